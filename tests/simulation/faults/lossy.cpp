// SPDX-License-Identifier: Apache-2.0
// FL1, FL2: messages between a process and the store are lost, late, repeated, or overtaken by those
// of another connection. A lost answer is a step that was carried out and nobody knows it.

#include "simulation/faults/fault.hpp"

namespace dibs::simulation {

namespace {

class lossy final : public fault {
  public:
    lossy(scene& on, random chosen_by) : scene_(on), random_(chosen_by) {}

    void begin() override {
        noted_ = std::make_unique<lasting>(scene_, "lossy");
        const bool repeats = random_.chance(600);
        for (auto& one : scene_.seats()) {
            auto& conditions = one.conditions;
            conditions.lost_per_mille = static_cast<unsigned>(random_.below(120));
            conditions.repeated_per_mille = repeats ? static_cast<unsigned>(random_.below(100)) : 0;
            conditions.repeats = repeats;
            conditions.slow_per_mille = static_cast<unsigned>(random_.below(200));
            conditions.slow_most = random_.skewed(core::milliseconds{1}, 2 * scene_.drawn.ttl);
        }
    }

    void heal() override {
        for (auto& one : scene_.seats()) {
            one.conditions.lost_per_mille = 0;
            one.conditions.repeated_per_mille = 0;
            one.conditions.slow_per_mille = 0;
        }
        noted_.reset();
    }

  private:
    scene& scene_;
    random random_;
    std::unique_ptr<lasting> noted_;
};

}  // namespace

std::unique_ptr<fault> make_lossy(scene& on, random chosen_by) {
    return std::make_unique<lossy>(on, chosen_by);
}

}  // namespace dibs::simulation
