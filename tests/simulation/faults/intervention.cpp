// SPDX-License-Identifier: Apache-2.0
// An operator looks at what is there, ends leases of others, and sets keys on hold. Whoever had a lease
// that was ended learns it at its next renewal, and may believe in it until then.

#include "simulation/faults/fault.hpp"

#include <set>
#include <string>
#include <utility>

namespace dibs::simulation {

namespace {

class intervention final : public recurring_fault {
  public:
    intervention(scene& on, random chosen_by)
        : recurring_fault(on, chosen_by, core::milliseconds{200}, std::chrono::seconds{5}),
          revokes_(random_.chance(500)) {}

    /// What is on hold is set free: an operator sees to that.
    void heal() override { lift_all(); }

  private:
    static constexpr core::nanoseconds patience = core::milliseconds{500};

    void strike() override {
        auto& one = some_seat();
        if (!one.now || !one.now->alive()) {
            return;
        }
        one.now->self().post([this, &by = *one.now] {
            if (by.core()->closed() || scene_.healed()) {
                return;
            }
            by.core()->store().list("", "", 10, [this, &by](const core::page& shown) {
                if (by.alive() && !by.core()->closed() && !shown.records.empty()) {
                    act(by, shown.records[random_.below(shown.records.size())]);
                }
            });
        });
    }

    void act(client_process& by, const core::record_info& on) {
        if (scene_.healed()) {
            return;
        }
        if (revokes_ && random_.chance(600)) {
            if (!on.holders.empty()) {
                note_fault(scene_, "revocation", R"("C2")", by.name());
                ask(by, core::revoke{.key = on.key, .fence = on.holders.front().fences.last});
            }
            return;
        }
        const auto length = std::chrono::ceil<core::microseconds>(
            random_.skewed(core::milliseconds{1}, scene_.drawn.ttl));
        held_.insert(on.key);
        ask(by, core::block{.key = on.key, .duration = length, .reason = "maintenance"});
        if (random_.chance(300)) {
            scene_.world.in(random_.skewed(core::microseconds{100}, 2 * length),
                            [this, key = on.key] { lift(key); });
        }
    }

    void ask(client_process& by, core::verb what) {
        by.core()->batcher().submit(
            std::move(what), patience, by.self().now() + patience, [](const core::reply&) {});
    }

    void lift(const std::string& key) {
        auto& one = some_seat();
        if (one.now && one.now->alive()) {
            one.now->self().post([this, &by = *one.now, key] {
                if (!by.core()->closed()) {
                    ask(by, core::block{.key = key, .duration = {}, .reason = {}});
                }
            });
        }
    }

    /// Again and again, since a message may be lost, or find a process asleep.
    void lift_all() {
        for (const auto& key : held_) {
            lift(key);
        }
        if (++lifted_ < 5) {
            scene_.world.in(core::milliseconds{100}, [this] { lift_all(); });
        }
    }

    const bool revokes_;
    std::set<std::string> held_;
    unsigned lifted_ = 0;
};

}  // namespace

std::unique_ptr<fault> make_intervention(scene& on, random chosen_by) {
    return std::make_unique<intervention>(on, chosen_by);
}

}  // namespace dibs::simulation
