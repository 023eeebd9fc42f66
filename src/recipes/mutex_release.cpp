// SPDX-License-Identifier: Apache-2.0
// How a lease is given back: passed on to the next caller of this process, released in the store, or released with a
// result, which is sent until it is known to be kept.
#include "recipes/mutex_parts.hpp"

#include <algorithm>
#include <utility>

namespace dibs::recipes {

using core::effect;
using core::milliseconds;
using core::reply;
using core::verdict;

struct mutex::giving {
    place_ptr where;
    lease_ptr lease;  ///< empty once it was answered
    release_completion done;
    bool shared = false;
};

void mutex::release(const lease_ptr& lease, release_completion done) {
    const auto now = env_.time.now();
    auto where = places_.find(lease->key());
    if (where && where->current != lease) {
        where.reset();
    }
    if (lease->held(now) && where && hand_on(where, lease, now)) {
        ++counters_.released;
        done({.released = true, .error = {}, .detail = {}});
        return;
    }
    if (!lease->held(now) || !lease->end_by_release()) {
        if (!lease->released()) {
            watchdog_.lose(
                lease,
                errc::lease_expired);  // if it has not come to that yet: no renewal leaves any more
        }
        done({});
        return;
    }
    ++counters_.released;
    watchdog_.forget(*lease);
    give_back(where ? where : place_of(lease->key()), lease, now, std::move(done));
}

/// Passes the lease to the first caller of the line; false when it may not be.
bool mutex::hand_on(const place_ptr& where, const lease_ptr& lease, instant now) {
    // Those in the store's queue come before those who race.
    if (where->line.empty() || where->line.front()->trying || where->queued > 0) {
        return false;
    }
    const auto next = where->line.front();
    const bool same_attachment = next->terms.lease.attached == lease->terms.attached;
    if (!same_attachment || next->terms.mark || !next->terms.part.exclusive() ||
        !core::may_hand_on({.leaver_in_doubt = watchdog_.in_doubt(*lease),
                            .hops = where->hops,
                            .kept_for = now - where->granted_at,
                            .round_trip = where->round_trip,
                            .leaver_fence = lease->fence(),
                            .block = where->block,
                            .remaining = lease->deadline() - now,
                            .next_ttl = next->terms.lease.ttl,
                            .next_floor = next->terms.fence_floor})) {
        return false;
    }
    const auto deadline = lease->deadline();
    if (!lease->end_by_release()) {
        return false;
    }
    watchdog_.forget(*lease);
    auto passed =
        std::allocate_shared<core::lease_state>(core::recycling_allocator<core::lease_state>{},
                                                where->key,
                                                lease->holder,
                                                lease->fence() + 1,
                                                next->terms.lease,
                                                now,
                                                deadline);
    passed->doubt = lease->doubt;
    where->current = passed;
    ++where->hops;
    ++counters_.handed_on;
    ++counters_.granted;
    next->lease = passed;
    const auto sent = deadline + core::deadline_margin(lease->terms.ttl) - lease->terms.ttl;
    watchdog_.guard(passed, sent, now);
    mutex_outcome outcome;
    outcome.lease = std::move(passed);
    finish(next, std::move(outcome));
    return true;
}

void mutex::give_back(const place_ptr& where,
                      const lease_ptr& lease,
                      instant now,
                      release_completion done) {
    if (where->current == lease) {
        where->current.reset();
        where->hops = 0;
    }
    ++(lease->shared ? where->giving_shares_back : where->giving_back);
    core::release asked;
    asked.key = lease->key();
    asked.holder = lease->holder;
    const auto deadline = lease->deadline();
    const auto patience = std::max<nanoseconds>(lease->terms.ttl / 6, milliseconds{50});
    auto under_way = std::allocate_shared<giving>(core::recycling_allocator<giving>{});
    under_way->where = where;
    under_way->lease = lease;
    under_way->done = std::move(done);
    under_way->shared = lease->shared;
    batcher_.submit(
        std::move(asked),
        patience,
        std::max(deadline, now + patience),
        [this, which = std::move(under_way)](const reply& heard) { given_back(*which, heard); });
}

void mutex::given_back(giving& which, const reply& heard) {
    if (!which.lease) {
        return;  // the answer that was given up; the undo has taken over
    }
    const auto where = std::move(which.where);
    const auto lease = std::move(which.lease);
    auto done = std::move(which.done);
    --(which.shared ? where->giving_shares_back : where->giving_back);
    const auto& given = heard.given;
    release_reply told;
    if (given.took == effect::yes) {
        told.released = given.what == verdict::released;
        if (!told.released) {
            lease->released_too_late(core::reason_of(given.lost));
        }
        // A process that shares a key may give back and wait at once: some stores count it, too.
        const bool of_others =
            !which.shared || where->watch == place::watch_stage::none || store_.caps().wakes_all;
        if (given.waiters && of_others) {
            where->aside_until = env_.time.now() + stand_aside;
        }
    } else {
        told.error = given.error;
        told.detail = given.detail;
        undo_.settle({.key = lease->key(),
                      .holder = lease->holder,
                      .ttl = lease->terms.ttl,
                      .last_sent = heard.sent,
                      .not_after = lease->doubt.not_after,
                      .answered = lease->doubt.answered});
    }
    done(std::move(told));
    advance(where);
}

// --- release with a result -----------------------------------------------------------------------

struct mutex::farewell {
    farewell(mutex& mine,
             place_ptr from,
             lease_ptr ended,
             core::result_to_keep left,
             release_completion told)
        : where(std::move(from)),
          lease(std::move(ended)),
          done(std::move(told)),
          alarm([this, &mine] {
              if (const auto self = me.lock()) {
                  mine.send_farewell(self);
              }
          }) {
        asked.key = lease->key();
        asked.holder = lease->holder;
        asked.result = std::move(left);
    }

    const place_ptr where;
    const lease_ptr lease;
    core::release asked;
    release_completion done;
    core::timer alarm;
    std::weak_ptr<farewell> me;
    instant last_sent{};
    bool in_doubt = false;  ///< a try may have been executed without our hearing of it
};

void mutex::release(const lease_ptr& lease, core::result_to_keep result, release_completion done) {
    if (!lease->held(env_.time.now()) || !lease->end_by_release()) {
        if (!lease->released()) {
            watchdog_.lose(lease, errc::lease_expired);
        }
        done({});
        return;
    }
    ++counters_.released;
    watchdog_.forget(*lease);
    const auto where = place_of(lease->key());
    if (where->current == lease) {
        where->current.reset();
        where->hops = 0;
    }
    ++where->giving_back;
    auto made = std::make_shared<farewell>(*this, where, lease, std::move(result), std::move(done));
    made->me = made;
    farewells_.push_back(made);
    send_farewell(made);
}

void mutex::send_farewell(const std::shared_ptr<farewell>& which) {
    const auto patience = std::max<nanoseconds>(which->lease->terms.ttl / 6, milliseconds{50});
    const auto until = std::max(which->lease->deadline(), env_.time.now() + patience);
    batcher_.submit(
        which->asked, patience, until, [this, which, first = true](const reply& heard) mutable {
            if (std::exchange(first,
                              false)) {  // the next try learns what became of one that was given up
                farewell_answered(which, heard);
            }
        });
}

void mutex::farewell_answered(const std::shared_ptr<farewell>& which, const reply& heard) {
    const auto& given = heard.given;
    which->last_sent = std::max(which->last_sent, heard.sent);
    release_reply told;
    if (given.took == effect::yes) {
        // An earlier try may have been executed without our hearing of it.
        const bool kept_before = given.what == verdict::not_held && given.result &&
                                 !given.result->is_mark &&
                                 given.result->fence == which->lease->fence() &&
                                 given.result->value == which->asked.result->value;
        told.released = given.what == verdict::finished || kept_before;
        // If it was, another grant may have replaced the result since: that looks the same.
        const bool may_have_been =
            which->in_doubt && (given.lost == core::loss::taken || given.lost == core::loss::gone);
        if (!told.released && may_have_been) {
            told.error = errc::outcome_unknown;
            told.detail =
                "an earlier try was not answered, and the key was granted again or freed "
                "since";
        } else if (!told.released) {
            which->lease->released_too_late(core::reason_of(given.lost));
        }
        if (given.waiters) {
            which->where->aside_until = env_.time.now() + stand_aside;
        }
    } else {
        const bool worth_a_retry =
            given.took == effect::unknown || given.error == condition::retryable;
        which->in_doubt = which->in_doubt || given.took == effect::unknown;
        if (worth_a_retry && !closed_ && env_.time.now() < which->lease->deadline()) {
            env_.time.arm(which->alarm, env_.time.now() + retry_first);
            return;
        }
        told.error = given.error;
        told.detail = given.detail;
        if (which->in_doubt && given.took == core::effect::no) {
            // That this try was not executed says nothing of the one before.
            told.error = errc::outcome_unknown;
            told.detail = "an earlier try was not answered; of the last one: " +
                          (given.detail.empty() ? given.error.message() : given.detail);
        }
        undo_.settle({.key = which->asked.key,
                      .holder = which->asked.holder,
                      .ttl = which->lease->terms.ttl,
                      .last_sent = which->last_sent,
                      .not_after = which->lease->doubt.not_after,
                      .answered = which->lease->doubt.answered});
    }
    farewells_.remove(which);
    --which->where->giving_back;
    which->done(std::move(told));
    advance(which->where);
}

}  // namespace dibs::recipes
