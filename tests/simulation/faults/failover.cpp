// SPDX-License-Identifier: Apache-2.0
// FL10: a copy that lags behind takes over, and at times the first one comes back right after it,
// with what it had then (A-B-A).

#include "simulation/faults/fault.hpp"

namespace dibs::simulation {

namespace {

class failover final : public recurring_fault {
  public:
    failover(scene& on, random chosen_by)
        : recurring_fault(on, chosen_by, std::chrono::seconds{1}, std::chrono::seconds{15}) {}

  private:
    void strike() override {
        take_over();
        if (random_.chance(300)) {
            const core::nanoseconds ttl = scene_.drawn.ttl;
            const auto later = random_.chance(500) ? random_.skewed(core::milliseconds{1}, ttl)
                                                   : random_.between(ttl, 3 * ttl);
            scene_.world.in(later, [this] {
                if (!scene_.healed()) {
                    take_over();
                }
            });
        }
    }

    void take_over() {
        if (const auto fallen = scene_.store().fail_over()) {
            note_lasting(
                scene_, "failover", core::milliseconds{500} + time_to_come_back, {}, *fallen);
            scene_.cut_all();
        }
    }
};

}  // namespace

std::unique_ptr<fault> make_failover(scene& on, random chosen_by) {
    return std::make_unique<failover>(on, chosen_by);
}

}  // namespace dibs::simulation
