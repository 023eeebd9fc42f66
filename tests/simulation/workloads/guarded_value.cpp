// SPDX-License-Identifier: Apache-2.0
// Callers take turns at a value behind the lock: a register, a counter, a set. Each acquires, shows
// its fence to the value (claim), reads it, thinks, writes it back, releases. With fences no update
// may be lost, whatever happens. The same without fences must lose some under pauses, or the run is
// too mild to prove anything.

#include "simulation/workloads/caller.hpp"
#include "simulation/workloads/target.hpp"
#include "simulation/workloads/workload.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace dibs::simulation {

namespace {

enum class shape : std::uint8_t { reg, counter, set };

class guarded_value final : public workload {
  public:
    guarded_value(scene& on, shape kind, bool fenced, bool patient = false, bool queues = false)
        : scene_(on),
          kind_(kind),
          fenced_(fenced),
          patient_(patient),
          queues_(queues),
          shortens_(on.chance.chance(100)) {
        for (unsigned at = 0; at < on.drawn.keys; ++at) {
            auto& one = places_.emplace_back();
            one.key = "k" + std::to_string(at);
            one.value = std::make_unique<target>(on, one.key + ".value", fenced);
        }
    }

    void employ(client_process& newcomer) override {
        for (unsigned at = 0; at < scene_.drawn.callers; ++at) {
            rest(newcomer);
        }
    }

    void judge() override {
        for (auto& one : places_) {
            const auto& kept = one.value->value();
            if (fenced_ && kind_ != shape::reg) {
                write_final(one);
            }
            if (kind_ == shape::counter) {
                const auto total = kept.empty() ? 0 : kept.front();
                lost_ += static_cast<std::uint64_t>(std::max<std::int64_t>(one.sure - total, 0));
                if (total > one.sure + one.unsure) {
                    scene_.complain("the counter of " + one.key + " went further than anybody");
                }
            } else if (kind_ == shape::set) {
                const std::set<std::int64_t> there{kept.begin(), kept.end()};
                for (const auto added : one.added) {
                    lost_ += there.contains(added) ? 0 : 1;
                }
            }
        }
        // Of two with one fence the checker tells which updates that accounts for (C5).
        if (fenced_ && lost_ > 0 && !scene_.laws.fences_excused()) {
            scene_.complain(std::to_string(lost_) + " updates were lost behind the fence");
        }
    }

    [[nodiscard]] std::uint64_t lost_updates() const override { return lost_; }

  private:
    struct place {
        std::string key;
        std::unique_ptr<target> value;
        std::int64_t sure = 0;    ///< increments that were told to be done
        std::int64_t unsure = 0;  ///< those of which nobody knows
        std::vector<std::int64_t> added;
    };

    /// One turn of one caller.
    struct turn {
        client_process& by;
        place& at;
        std::unique_ptr<held_lease> lease;
        core::fence_number fence = 0;
        std::uint64_t call = 0;
        std::int64_t mine = 0;
        std::vector<std::int64_t> found;
    };
    using turn_ptr = std::shared_ptr<turn>;

    void rest(client_process& by) {
        const auto pause = scene_.chance.skewed(core::microseconds{50}, scene_.drawn.rest_most);
        by.self().post_in(pause, [this, &by] { begin(by); });
    }

    void begin(client_process& by) {
        auto& at = places_[scene_.chance.below(places_.size())];
        const operation call;
        const auto cancels =
            !scene_.healed() && scene_.chance.chance(scene_.drawn.cancel_per_mille);
        acquire(by, at.key, options(), call, [this, &by, &at](std::unique_ptr<held_lease> held) {
            if (!held) {
                rest(by);
                return;
            }
            auto mine = std::make_shared<turn>(turn{by, at, std::move(held), 0, 0, 0, {}});
            mine->fence = mine->lease->fence();
            step(mine, &guarded_value::show_fence);
        });
        if (cancels) {
            by.self().post_in(
                scene_.chance.skewed(core::nanoseconds{0}, scene_.drawn.work_most * 2),
                [call] { call.cancel(); });
        }
    }

    [[nodiscard]] acquire_options options() {
        auto& chance = scene_.chance;
        acquire_options asked;
        asked.ttl = scene_.drawn.ttl;
        switch (patient_ ? 2 : chance.below(4)) {
            case 0:
                break;
            case 1:
                asked.wait = core::milliseconds{chance.between(1, 3 * asked.ttl.count())};
                break;
            default:
                asked.wait = std::chrono::minutes{5};
        }
        if (queues_) {
            // Some race and some are short of time: they must neither overtake nor hold up the rest.
            asked.order = chance.chance(100) ? order::race : order::queue;
            if (chance.chance(100)) {
                asked.wait = core::milliseconds{chance.between(0, 2 * asked.ttl.count())};
            }
        }
        asked.timeout = core::milliseconds{chance.between(50, 5000)};
        asked.renew = !chance.chance(shortens_ ? 700 : 100);
        if (chance.chance(100)) {
            asked.notice = asked.ttl / 4;
        }
        if (chance.chance(50)) {
            asked.max_hold = asked.ttl * 2;
        }
        return asked;
    }

    /// Does what comes next in a task of its own: a fault may strike before it.
    void step(const turn_ptr& mine, void (guarded_value::*next)(const turn_ptr&)) {
        mine->by.self().post([this, mine, next] { (this->*next)(mine); });
    }

    void show_fence(const turn_ptr& mine) {
        if (!mine->lease->held()) {
            finish(mine);
            return;
        }
        begin_update(*mine);
        if (!fenced_) {
            read(mine);
            return;
        }
        const auto call = kind_ == shape::reg ? begin_call(*mine, "claim") : 0;
        mine->at.value->claim(mine->by, mine->fence, [this, mine, call](const auto& given) {
            end_call(*mine, "claim", call, given);
            if (given.stale) {
                refused(mine);
            } else {
                step(mine, &guarded_value::read);
            }
        });
    }

    void read(const turn_ptr& mine) {
        const auto call = kind_ == shape::reg && fenced_ ? scene_.history.new_id() : 0;
        if (call != 0) {
            call_line(mine->by, "read", "inv", call, mine->at.value->name())
                .number("fence", mine->fence);
        }
        mine->at.value->read(mine->by, [this, mine, call](const auto& given) {
            mine->found = given.value;
            if (call != 0) {
                auto told = call_line(mine->by, "read", "ok", call, mine->at.value->name());
                if (given.value.empty()) {
                    told.null("value");
                } else {
                    told.number("value", given.value.back());
                }
            }
            think(mine);
        });
    }

    void think(const turn_ptr& mine) {
        const auto length = scene_.chance.skewed(core::microseconds{10}, scene_.drawn.work_most);
        mine->by.self().post_in(length, [this, mine] { check_and_write(mine); });
    }

    /// Between the look at the handle and the write a pause may fall: the fence is for that.
    void check_and_write(const turn_ptr& mine) {
        if (!mine->lease->held()) {
            give_up_update(*mine);
            linger(mine);
            return;
        }
        if (scene_.chance.chance(shortens_ ? 200 : 50)) {
            const core::nanoseconds length = renew_by_hand(*mine);
            const core::nanoseconds usual = scene_.drawn.ttl;
            if (!scene_.healed() && length < usual && scene_.chance.chance(100)) {
                // Until it must be over, if nothing was heard.
                mine->by.self().post_in(length + scene_.chance.skewed({}, usual / 8),
                                        [this, mine] { check_and_write(mine); });
                return;
            }
        }
        step(mine, &guarded_value::write);
    }

    void write(const turn_ptr& mine) {
        auto next = mine->found;
        if (kind_ == shape::counter) {
            next = {(next.empty() ? 0 : next.front()) + 1};
        } else if (kind_ == shape::set) {
            next.push_back(mine->mine);
        } else {
            next = {mine->mine};
        }
        auto call = mine->call;
        if (kind_ == shape::reg && fenced_) {
            call = scene_.history.new_id();
            call_line(mine->by, "write", "inv", call, mine->at.value->name())
                .number("fence", mine->fence)
                .number("value", mine->mine);
        }
        mine->at.unsure += 1;
        mine->at.value->write(
            mine->by, mine->fence, std::move(next), [this, mine, call](const auto& given) {
                mine->at.unsure -= 1;
                if (!given.stale) {
                    mine->at.sure += 1;
                    mine->at.added.push_back(mine->mine);
                }
                if (kind_ == shape::reg) {
                    end_call(*mine, "write", fenced_ ? call : 0, given);
                } else if (fenced_) {
                    end_call(*mine, verb(), mine->call, given);
                }
                step(mine, &guarded_value::finish);
            });
    }

    /// Somebody who keeps a lost lease for a while and asks again: lost is final.
    void linger(const turn_ptr& mine) {
        const auto length = scene_.chance.skewed(core::microseconds{10}, scene_.drawn.ttl);
        mine->by.self().post_in(length, [this, mine] {
            static_cast<void>(mine->lease->held());
            finish(mine);
        });
    }

    /// For a shorter or a longer time than before, which it tells.
    core::milliseconds renew_by_hand(turn& mine) {
        const auto state = detail::lease_access::handle(mine.lease->handle())->state;
        const core::nanoseconds ttl = scene_.drawn.ttl;
        const auto wished = scene_.chance.between(ttl / 2, shortens_ ? ttl : 2 * ttl);
        const core::nanoseconds most = mine.by.core()->store().caps().ttl_max;
        const auto length = std::chrono::floor<core::milliseconds>(std::min(wished, most));
        mine.by.core()->watchdog().renew_now(state, length, [](const core::reply&) {});
        return length;
    }

    void finish(const turn_ptr& mine) {
        auto& by = mine->by;
        give_back(by, std::move(mine->lease), [this, &by](bool) { rest(by); });
    }

    /// The value as it is in the end, read by somebody who has nothing to do with the lock.
    void write_final(const place& of) {
        const auto call = scene_.history.new_id();
        const op_word op = kind_ == shape::counter ? op_word{"count"} : op_word{"members"};
        for (const auto* phase : {"inv", "ok"}) {
            auto told = scene_.history.event(op, phase);
            told.number("call", call)
                .text("proc", "reader")
                .time("local_ns", scene_.world.now())
                .text("key", of.value->name());
            if (std::string_view{phase} == "inv") {
                continue;
            }
            const auto& kept = of.value->value();
            if (kind_ == shape::counter) {
                told.number("value", kept.empty() ? 0 : kept.front());
            } else {
                told.values("values", kept);
            }
        }
    }

    // --- what is written down: a register's steps one by one, an update of the others as one call -

    [[nodiscard]] op_word verb() const {
        return kind_ == shape::counter ? op_word{"increment"} : op_word{"add"};
    }

    void begin_update(turn& mine) {
        mine.mine = static_cast<std::int64_t>(++values_);
        if (kind_ == shape::reg || !fenced_) {
            return;
        }
        mine.call = scene_.history.new_id();
        auto begun = call_line(mine.by, verb(), "inv", mine.call, mine.at.value->name());
        begun.number("fence", mine.fence);
        if (kind_ == shape::counter) {
            begun.number("amount", 1);
        } else {
            begun.number("value", mine.mine);
        }
    }

    void give_up_update(turn& mine) {
        if (mine.call != 0) {
            call_line(mine.by, verb(), "fail", mine.call, mine.at.value->name())
                .text("error", "the lease was lost");
        }
    }

    void refused(const turn_ptr& mine) {
        if (mine->call != 0) {
            call_line(mine->by, verb(), "fail", mine->call, mine->at.value->name())
                .text("error", "stale");
        }
        finish(mine);
    }

    [[nodiscard]] std::uint64_t begin_call(turn& mine, op_word op) {
        const auto call = scene_.history.new_id();
        call_line(mine.by, op, "inv", call, mine.at.value->name()).number("fence", mine.fence);
        return call;
    }

    void end_call(turn& mine, op_word op, std::uint64_t call, const target::answer& given) {
        if (call == 0) {
            return;
        }
        auto told =
            call_line(mine.by, op, given.stale ? "fail" : "ok", call, mine.at.value->name());
        if (given.stale) {
            told.text("error", "stale");
        }
    }

    scene& scene_;
    const shape kind_;
    const bool fenced_;
    const bool patient_;
    const bool queues_;
    const bool shortens_;  ///< leases are renewed by hand, and often for a shorter time
    std::vector<place> places_;
    std::uint64_t values_ = 0;
    std::uint64_t lost_ = 0;
};

}  // namespace

std::unique_ptr<workload> make_register(scene& on) {
    return std::make_unique<guarded_value>(on, shape::reg, true);
}
std::unique_ptr<workload> make_counter(scene& on) {
    return std::make_unique<guarded_value>(on, shape::counter, true);
}
std::unique_ptr<workload> make_set(scene& on) {
    return std::make_unique<guarded_value>(on, shape::set, true);
}
std::unique_ptr<workload> make_waiting(scene& on) {
    return std::make_unique<guarded_value>(on, shape::counter, true, true);
}
std::unique_ptr<workload> make_queue(scene& on) {
    return std::make_unique<guarded_value>(on, shape::counter, true, true, true);
}
std::unique_ptr<workload> make_unfenced(scene& on) {
    return std::make_unique<guarded_value>(on, shape::counter, false);
}

}  // namespace dibs::simulation
