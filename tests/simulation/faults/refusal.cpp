// SPDX-License-Identifier: Apache-2.0
// FL12, FL13: the store refuses steps for a while, and says so: no space, read-only, overload.

#include "simulation/faults/fault.hpp"

namespace dibs::simulation {

namespace {

class refusal final : public recurring_fault {
  public:
    refusal(scene& on, random chosen_by)
        : recurring_fault(on, chosen_by, core::milliseconds{200}, std::chrono::seconds{8}) {}

    void heal() override {
        scene_.store().refuse(0);
        lasting_.clear();
    }

  private:
    void strike() override {
        const auto share = random_.chance(300) ? 1000U : static_cast<unsigned>(random_.below(800));
        if (!scene_.store().refuse(share)) {
            return;
        }
        lasting_.push_back(std::make_unique<lasting>(scene_, "refusal"));
        auto* noted = lasting_.back().get();
        scene_.world.in(random_.skewed(core::milliseconds{1}, 2 * scene_.drawn.ttl), [this, noted] {
            if (!scene_.healed()) {
                noted->over();
                scene_.store().refuse(0);
            }
        });
    }

    std::vector<std::unique_ptr<lasting>> lasting_;
};

}  // namespace

std::unique_ptr<fault> make_refusal(scene& on, random chosen_by) {
    return std::make_unique<refusal>(on, chosen_by);
}

}  // namespace dibs::simulation
