// SPDX-License-Identifier: Apache-2.0
// FL5: a process does not run for a while, shorter or longer than its leases last, from any step
// on. Its clock goes on. Bounded: who sleeps past his deadline holds nothing, and can know it.

#include "simulation/faults/fault.hpp"

namespace dibs::simulation {

namespace {

class pause final : public recurring_fault {
  public:
    pause(scene& on, random chosen_by)
        : recurring_fault(on, chosen_by, core::milliseconds{50}, std::chrono::seconds{4}) {}

  private:
    void strike() override {
        auto& one = some_seat();
        if (!one.now || !one.now->alive()) {
            return;
        }
        const core::nanoseconds ttl = scene_.drawn.ttl;
        const auto length = random_.skewed(core::milliseconds{1}, 4 * ttl);
        // At one of the next steps, so that each of them is hit now and then.
        auto& runner = one.now->self();
        runner.before_each_task = [&runner, this, length, left = random_.below(8)]() mutable {
            if (left-- > 0) {
                return;
            }
            if (!scene_.healed()) {
                const auto at_most = note_lasting(scene_, "pause", length, runner.name());
                runner.pause_until(scene_.world.now() + at_most);
            }
            runner.before_each_task = {};
        };
    }
};

}  // namespace

std::unique_ptr<fault> make_pause(scene& on, random chosen_by) {
    return std::make_unique<pause>(on, chosen_by);
}

}  // namespace dibs::simulation
