// SPDX-License-Identifier: Apache-2.0
// A job by the hour, whose hosts fire seldom and at times together. In half of the runs each fire makes up for all slots
// that were missed, oldest first, one at a time; in the other half it wants the slot of now alone, while a slot before it
// may still be run by somebody else. No slot is done twice (C10); no two are run at the same time by hosts that both may
// believe in their turn; and of slots that are made up for, one begins for the first time only when the one before it has
// begun.

#include "client/checked_options.hpp"
#include "recipes/once/due_slots.hpp"
#include "recipes/once/once.hpp"
#include "simulation/workloads/claims.hpp"
#include "simulation/workloads/lease_notes.hpp"
#include "simulation/workloads/workload.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace dibs::simulation {

namespace {

constexpr std::string_view job = "job";

recipes::schedule hourly() {
    std::string fault;
    return recipes::schedule::make_cron("0 * * * *", "UTC", fault).value();
}

class backlog final : public workload {
  public:
    explicit backlog(scene& on) : scene_(on), plan_(hourly()) {
        // So many hours pass by the schedule during a run.
        hours_ = scene_.chance.between(std::int64_t{3}, std::int64_t{14});
        makes_up_ = scene_.chance.chance(500);
    }

    void employ(client_process& newcomer) override {
        rest(employed<worker>(newcomer, newcomer.core()->store()));
    }

    void judge() override {
        if (fires_ > 50 && started_.empty()) {
            scene_.complain("nobody ever ran a slot");
        }
    }

    [[nodiscard]] bool goes_on() const override { return false; }

  private:
    struct worker : claimant<recipes::once> {
        using claimant::claimant;
        std::deque<recipes::slot> due;
        bool knew = false;  ///< of a slot of the job, when it asked what is due
    };
    using worker_ptr = std::shared_ptr<worker>;

    struct run {
        client_process* by = nullptr;
        recipes::once_terms terms;
        recipes::slot_record mine;
        recipes::lease_ptr lease;
        recipes::lease_ptr turn;
        bool knew = false;

        [[nodiscard]] bool believes() const {
            if (!by->alive()) {
                return false;
            }
            const auto now = by->self().now();
            return lease->held(now) && (!turn || turn->held(now));
        }
    };
    using run_ptr = std::shared_ptr<run>;

    /// What the schedule's clock shows.
    [[nodiscard]] core::wall_instant planned(sim_time at) const {
        const auto ms = [](auto span) {
            return std::chrono::floor<core::milliseconds>(span).count();
        };
        const auto passed = ms(at) * hours_ * ms(std::chrono::hours{1}) /
                            ms(scene_.drawn.faults_for + scene_.drawn.healed_for);
        return core::wall_instant{std::chrono::hours{24} + core::milliseconds{passed}};
    }

    void rest(const worker_ptr& who) {
        const auto length = scene_.drawn.faults_for;
        const auto pause = scene_.chance.between(length / 60, length / 8);
        who->by.self().post_in(pause, [this, who] { fire(who); });
    }

    void fire(const worker_ptr& who) {
        if (who->by.core()->closed()) {
            return;
        }
        ++fires_;
        if (!makes_up_) {
            find_due(who, {});
            next(who);
            return;
        }
        who->by.core()->store().list(
            recipes::key_of_slot(job, ""), {}, 500, [this, who](core::page page) {
                if (!who->by.alive()) {
                    return;
                }
                if (page.error) {
                    rest(who);
                    return;
                }
                find_due(who, page);
                who->by.self().post([this, who] { next(who); });
            });
    }

    void find_due(const worker_ptr& who, const core::page& page) {
        std::vector<recipes::known_slot> known;
        for (const auto& one : page.records) {
            bool newer = false;
            const auto kept =
                one.result ? recipes::slot_record_of(one.result->value, newer) : std::nullopt;
            if (!kept) {
                continue;
            }
            if (auto found = recipes::known_slot_of(*kept, !one.holders.empty(), false)) {
                known.push_back(std::move(*found));
            }
        }
        who->knew = !known.empty();
        recipes::due_terms terms;
        terms.policy = makes_up_ ? recipes::missed_slots::all : recipes::missed_slots::last;
        const auto clock = planned(scene_.world.now());
        auto due = recipes::find_due(plan_, plan_.at(clock, {}), clock, known, terms);
        who->due.assign(due.slots.begin(), due.slots.end());
    }

    void next(const worker_ptr& who) {
        if (who->due.empty() || who->by.core()->closed()) {
            rest(who);
            return;
        }
        const auto slot = who->due.front();
        who->due.pop_front();
        const auto options = claim_options(scene_);
        auto mine = std::make_shared<run>();
        mine->by = &who->by;
        mine->knew = who->knew;
        mine->terms.job = job;
        mine->terms.slot = slot.name;
        mine->terms.begin_ms =
            std::chrono::floor<core::milliseconds>(slot.begin.time_since_epoch()).count();
        mine->terms.in_turn = true;
        mine->terms.witness = std::make_shared<lease_notes>(who->by);
        mine->terms.acquire = detail::terms_of(options);
        mine->terms.retries = 1000;
        mine->terms.backoff = scene_.drawn.ttl / 4;
        mine->terms.who.host = who->by.name();
        const auto key = recipes::key_of_slot(job, slot.name);
        if (!number_of_.contains(slot.name)) {
            number_of_[slot.name] = slot.begin.time_since_epoch() / std::chrono::hours{1};
            scene_.history.event("slot")
                .text("key", key)
                .text("policy", "at_least_once")
                .flag("must_complete", false);
        }
        const auto call = note_claim(who->by, key, options.ttl);
        who->call = who->recipe->claim(
            mine->terms,
            [this, who, mine, call, key, ttl = options.ttl](recipes::once_outcome told) {
                who->call.reset();
                if (who->by.alive()) {
                    claimed(who, mine, call, key, ttl, std::move(told));
                }
            });
    }

    void claimed(const worker_ptr& who,
                 const run_ptr& mine,
                 std::uint64_t call,
                 const std::string& key,
                 core::nanoseconds ttl,
                 recipes::once_outcome told) {
        if (!told.lease) {
            note_no_lease(who->by, call, key, told.error);
            // Whoever is at it goes through the rest.
            if (told.verdict != recipes::once_verdict::done) {
                who->due.clear();
            }
            who->by.self().post([this, who] { next(who); });
            return;
        }
        note_granted(who->by, "acquire", call, ttl, *told.lease);
        mine->lease = std::move(told.lease);
        mine->turn = std::move(told.turn);
        mine->mine = std::move(told.mine);
        who->by.self().post([this, who, mine] { work(who, mine); });
    }

    void work(const worker_ptr& who, const run_ptr& mine) {
        const bool begins = mine->believes();
        if (begins) {
            note_begin(mine);
        }
        do_job(scene_,
               who->by,
               *mine->lease,
               begins,
               scene_.chance.between(core::milliseconds{1}, longest_run()),
               [this, who, mine](std::uint64_t job_call) { finish(who, mine, job_call); });
    }

    /// Beyond the end of a slot, often enough.
    [[nodiscard]] core::nanoseconds longest_run() const {
        return (scene_.drawn.faults_for + scene_.drawn.healed_for) / hours_ * 3 / 2;
    }

    void note_begin(const run_ptr& mine) {
        for (const auto& other : running_) {
            if (other->believes()) {
                scene_.laws.overlapped(mine->terms.slot + " began while " + other->terms.slot +
                                       " was run");
            }
        }
        running_.push_back(mine);
        const auto number = number_of_.at(mine->terms.slot);
        if (started_.empty()) {
            first_ = number;
        }
        // Of a job of which nothing was known yet no slot had been missed.
        const bool for_the_first_time = started_.insert(number).second;
        if (mine->knew && for_the_first_time && number > first_ && !started_.contains(number - 1)) {
            scene_.complain(mine->terms.slot + " began before the slot before it");
        }
    }

    void finish(const worker_ptr& who, const run_ptr& mine, std::uint64_t job_call) {
        std::erase(running_, mine);
        if (who->by.core()->closed()) {
            return;
        }
        const auto call = note_release(who->by, *mine->lease);
        const bool success = job_call != 0;
        who->recipe->finish(
            mine->lease,
            mine->terms,
            mine->mine,
            success,
            success ? 0 : 1,
            [this, who, mine, call, job_call, success](recipes::release_reply told) {
                if (!who->by.alive()) {
                    return;
                }
                const auto& key = mine->lease->key();
                note_released(who->by, call, key, told);
                note_job_end(who->by, job_call, key, phase_of_run(told, success));
                if (!told.released) {
                    who->due.clear();
                }
                give_turn_back(who, mine);
            });
    }

    void give_turn_back(const worker_ptr& who, const run_ptr& mine) {
        if (!mine->turn) {
            next(who);
            return;
        }
        if (who->by.core()->closed()) {
            return;
        }
        const auto key = recipes::key_of_turn(job);
        const auto call = note_release(who->by, *mine->turn);
        who->by.core()->mutex().release(mine->turn,
                                        [this, who, key, call](recipes::release_reply told) {
                                            if (!who->by.alive()) {
                                                return;
                                            }
                                            note_released(who->by, call, key, told);
                                            who->by.self().post([this, who] { next(who); });
                                        });
    }

    scene& scene_;
    recipes::schedule plan_;
    std::int64_t hours_ = 0;
    bool makes_up_ = false;  ///< for what was missed
    std::map<std::string, std::int64_t> number_of_;
    std::vector<run_ptr> running_;
    std::set<std::int64_t> started_;
    std::int64_t first_ = 0;
    std::uint64_t fires_ = 0;
};

}  // namespace

std::unique_ptr<workload> make_backlog(scene& on) {
    return std::make_unique<backlog>(on);
}

}  // namespace dibs::simulation
