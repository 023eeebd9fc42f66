// SPDX-License-Identifier: Apache-2.0
// FL8: the store's clock is stepped, by up to ten seconds.

#include "simulation/faults/fault.hpp"

namespace dibs::simulation {

namespace {

class clock_step final : public recurring_fault {
  public:
    clock_step(scene& on, random chosen_by)
        : recurring_fault(on, chosen_by, std::chrono::seconds{1}, std::chrono::seconds{20}) {}

  private:
    void strike() override {
        constexpr auto most = core::nanoseconds{std::chrono::seconds{10}};
        const auto by = random_.between(-most, most);
        if (const auto fallen = scene_.store().step_clock(by)) {
            note_fault(scene_, "clock step", *fallen);
        }
    }
};

}  // namespace

std::unique_ptr<fault> make_clock_step(scene& on, random chosen_by) {
    return std::make_unique<clock_step>(on, chosen_by);
}

}  // namespace dibs::simulation
