// SPDX-License-Identifier: Apache-2.0
// FL7, FL8: clocks run at rates of their own. Within the margin that the local deadline keeps every
// promise holds; two per cent on both sides are beyond it.

#include "simulation/faults/fault.hpp"

namespace dibs::simulation {

namespace {

class drift final : public recurring_fault {
  public:
    drift(scene& on, random chosen_by, std::int64_t ppm_most, std::string_view excuses)
        : recurring_fault(on, chosen_by, core::milliseconds{1}, std::chrono::seconds{10}),
          ppm_most_(ppm_most),
          excuses_(excuses) {}

    void heal() override {
        set_all([] { return std::int64_t{0}; });
    }

  private:
    void strike() override {
        note_fault(scene_, "drift", excuses_);
        set_all([this] { return random_.between(-ppm_most_, ppm_most_); });
    }

    template <typename Rate>
    void set_all(Rate rate) {
        for (auto& one : scene_.seats()) {
            if (one.machine) {
                one.machine->set_rate(rate());
            }
        }
        scene_.store().set_clock_rate(rate());
    }

    const std::int64_t ppm_most_;
    const std::string_view excuses_;
};

}  // namespace

std::unique_ptr<fault> make_drift(scene& on, random chosen_by) {
    return std::make_unique<drift>(on, chosen_by, 4500, "");
}

std::unique_ptr<fault> make_wild_drift(scene& on, random chosen_by) {
    return std::make_unique<drift>(on, chosen_by, 20'000, R"("C2")");
}

}  // namespace dibs::simulation
