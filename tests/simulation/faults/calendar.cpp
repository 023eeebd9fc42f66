// SPDX-License-Identifier: Apache-2.0
// FL19: the calendars of the machines differ, and are stepped, by up to hours. Nothing that decides
// who holds a lease may care.

#include "simulation/faults/fault.hpp"

namespace dibs::simulation {

namespace {

class calendar final : public recurring_fault {
  public:
    calendar(scene& on, random chosen_by)
        : recurring_fault(on, chosen_by, core::milliseconds{1}, std::chrono::seconds{15}) {}

  private:
    void strike() override {
        constexpr auto most = core::nanoseconds{std::chrono::hours{3}};
        const auto by = random_.skewed(core::nanoseconds{0}, 2 * most) - most / 1000;
        if (!scene_.drawn.store->one_host) {
            note_fault(scene_, "calendar step");
            some_seat().on->step_wall(by);
        } else if (const auto fallen = scene_.store().step_clock(by)) {
            note_fault(scene_, "calendar step", *fallen);
        }
    }
};

}  // namespace

std::unique_ptr<fault> make_calendar(scene& on, random chosen_by) {
    return std::make_unique<calendar>(on, chosen_by);
}

}  // namespace dibs::simulation
