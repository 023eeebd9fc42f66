// SPDX-License-Identifier: Apache-2.0
// FL6: a machine is suspended with all that runs on it. CLOCK_BOOTTIME goes on, CLOCK_MONOTONIC does
// not.

#include "simulation/faults/fault.hpp"

namespace dibs::simulation {

namespace {

class suspend final : public recurring_fault {
  public:
    suspend(scene& on, random chosen_by)
        : recurring_fault(on, chosen_by, core::milliseconds{500}, std::chrono::seconds{10}) {}

  private:
    void strike() override {
        auto& machine = *some_seat().on;
        const auto drawn = random_.skewed(core::milliseconds{20}, 4 * scene_.drawn.ttl);
        const auto length = note_lasting(scene_, "suspend", drawn, machine.name());
        machine.sleep(length);
        for (auto& one : scene_.seats()) {
            if (one.on == &machine && one.now && one.now->alive()) {
                one.now->self().pause_until(scene_.world.now() + length);
            }
        }
    }
};

}  // namespace

std::unique_ptr<fault> make_suspend(scene& on, random chosen_by) {
    return std::make_unique<suspend>(on, chosen_by);
}

}  // namespace dibs::simulation
