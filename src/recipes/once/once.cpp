// SPDX-License-Identifier: Apache-2.0
#include "recipes/once/once.hpp"

#include "recipes/late_result.hpp"

#include <algorithm>
#include <utility>

namespace dibs::recipes {

using core::instant;
using core::microseconds;
using core::milliseconds;
using core::nanoseconds;

namespace {

constexpr microseconds longest_backoff = std::chrono::hours{1};

constexpr std::string_view not_ours = "the key keeps a result that is not a slot's";

/// Who waits for the end of an operator's hold looks again this often: it may be lifted.
constexpr nanoseconds hold_looked_at_every = std::chrono::seconds{2};

/// After a look that failed; twice as long after each.
constexpr nanoseconds look_again_first = milliseconds{20};
constexpr nanoseconds look_again_longest = std::chrono::seconds{1};

instant later(instant now, nanoseconds by) {
    return by >= instant::max() - now ? instant::max() : now + by;
}

/// How long the store keeps what becomes of the slot. By its record: somebody may name a planned slot by hand.
microseconds lasting(const once_terms& terms, const slot_record& record) {
    return record.begin_ms || record.at_most_once ? core::result_to_keep::forever : terms.keep;
}

/// As fresh as it lasts: whoever has not read it is not granted the slot.
core::result_to_keep to_keep(const once_terms& terms, const slot_record& record) {
    const auto length = lasting(terms, record);
    return {.value = to_text(record), .fresh = length, .keep = length};
}

/// For who was granted the slot and does not run it: so that nothing has happened.
core::result_to_keep as_before(const once_terms& terms, std::optional<slot_record> found) {
    if (!found) {
        return {};
    }
    if (found->next_at_ms != 0) {
        found->next_at_ms = found->ended_ms;  // its back-off is over, and does not begin anew
    }
    return to_keep(terms, *found);
}

void give_back(mutex& keys, const once_terms& terms, const lease_ptr& turn) {
    mutex::release_completion told = [](release_reply) {};
    if (terms.witness) {
        told = terms.witness->gives_back(*turn);
    }
    keys.release(turn, std::move(told));
}

/// The fence of what a slot has come to, when nobody is at it; else zero.
core::fence_number outcome_in(const core::page& found) {
    if (found.records.empty() || !found.records.front().result ||
        !found.records.front().holders.empty()) {
        return 0;
    }
    return found.records.front().result->fence;
}

std::int64_t boot_ms(instant at) {
    return std::chrono::duration_cast<milliseconds>(at.time_since_epoch()).count();
}

}  // namespace

microseconds backoff_after(microseconds first, unsigned failures) noexcept {
    auto pause = first;
    const auto longest = std::max(first, longest_backoff);
    for (unsigned doubled = 1; doubled < failures && pause < longest; ++doubled) {
        pause *= 2;
    }
    return std::min(pause, longest);
}

class once::call {
  public:
    call(once& home, once_terms agreed, completion told)
        : terms(std::move(agreed)), done(std::move(told)), alarm([this, &home] {
              if (const auto self = me.lock()) {
                  home.begin(self);
              }
          }) {}

    once_terms terms;
    completion done;
    core::timer alarm;
    std::weak_ptr<call> me;
    instant wait_until{};
    instant try_until{};  ///< until then a look is tried again also by who does not wait
    unsigned looks_failed = 0;
    mutex::call_ptr asking;
    lease_ptr turn;
    slot_record mine;
    std::optional<slot_record> previous;  ///< by which the attempt is numbered
    core::fence_number seen = 0;          ///< of that record, which may be passed over
    /// Of the outcome that is to be passed over by order; zero: none.
    std::optional<core::fence_number> by_order;
    bool finished = false;
};

once::once(core::environment env, store::store& through, mutex& keys, calendar now)
    : env_(env), store_(through), keys_(keys), memory_(env, through), now_(std::move(now)) {}

once::~once() = default;

once::call_ptr once::claim(once_terms terms, completion done) {
    auto made = std::make_shared<call>(*this, std::move(terms), std::move(done));
    made->me = made;
    const auto now = env_.time.now();
    made->wait_until = later(now, made->terms.acquire.wait);
    made->try_until = later(now, made->terms.acquire.timeout);
    env_.exec.post([this, made] {
        if (!made->finished) {
            begin(made);
        }
    });
    return made;
}

void once::look(const std::string& key, core::unique_function<void(core::page)> done) {
    store_.list(key, {}, 1, [key, done = std::move(done)](core::page page) mutable {
        std::erase_if(page.records, [&](const auto& record) { return record.key != key; });
        done(std::move(page));
    });
}

/// The kept result numbers the attempt, so it is looked at first.
void once::begin(const call_ptr& which) {
    if (which->finished) {
        return;
    }
    look(key_of_slot(which->terms.job, which->terms.slot), [this, which](core::page page) {
        if (!which->finished) {
            found_record(which, std::move(page));
        }
    });
}

/// What stands in the way of a look may pass, as with an acquire: see mutex::failed.
void once::look_failed(const call_ptr& which, std::error_code error, std::string detail) {
    const auto now = env_.time.now();
    const auto end = error == errc::store_refused ? which->wait_until
                                                  : std::max(which->wait_until, which->try_until);
    if (error != condition::retryable || now >= end) {
        fail(which, error, std::move(detail));
        return;
    }
    keys_.note_trouble(key_of_slot(which->terms.job, which->terms.slot),
                       {error, std::move(detail)});
    give_turn_back(which);  // it may be lost by then
    const auto pause = std::min(look_again_longest,
                                look_again_first * (1 << std::min(which->looks_failed++, 10U)));
    env_.time.arm(which->alarm, now + std::min(pause, end - now));
}

void once::looks_are_over(const call_ptr& which) {
    if (std::exchange(which->looks_failed, 0U) > 0) {
        keys_.note_trouble(key_of_slot(which->terms.job, which->terms.slot), {});
    }
}

void once::found_record(const call_ptr& which, core::page page) {
    if (page.error) {
        look_failed(which, page.error, std::move(page.detail));
        return;
    }
    which->previous.reset();
    which->seen = 0;
    if (!which->by_order) {
        which->by_order = which->terms.again ? outcome_in(page) : 0;
    }
    if (!page.records.empty() && page.records.front().result) {
        const auto& record = page.records.front();
        if (settled_by(which, *record.result, record.holders.empty())) {
            return;
        }
    }
    if (which->previous || !which->terms.begin_ms || which->terms.again) {
        look_for_hold(which);
    } else {
        ask_unless_forgotten(which);
    }
}

/// Nothing is kept of the slot: it was never started, or so long ago that it was forgotten.
void once::ask_unless_forgotten(const call_ptr& which) {
    const auto& terms = which->terms;
    memory_.beyond(terms.job,
                   terms.slot,
                   *terms.begin_ms,
                   [this, which](std::error_code error, std::string detail, bool beyond) {
                       if (which->finished) {
                           return;
                       }
                       if (error) {
                           look_failed(which, error, std::move(detail));
                       } else if (beyond) {
                           once_outcome outcome;
                           outcome.verdict = once_verdict::forgotten;
                           end(which, std::move(outcome));
                       } else {
                           look_for_hold(which);
                       }
                   });
}

void once::look_for_hold(const call_ptr& which) {
    look(which->terms.job, [this, which](core::page found) {
        if (which->finished || put_off_by_hold(which, found)) {
            return;
        }
        if (which->terms.in_turn && !which->turn) {
            ask_for_turn(which);
        } else {
            ask(which);
        }
    });
}

/// Whoever has it may have run this slot, so all is looked at anew.
void once::ask_for_turn(const call_ptr& which) {
    auto asked = which->terms.acquire;
    asked.wait = wait_left(*which);
    const auto key = key_of_turn(which->terms.job);
    if (which->terms.witness) {
        which->terms.witness->asked(key, asked);
    }
    which->asking = keys_.acquire(
        key, std::move(asked), [this, &keys = keys_, key, which](mutex_outcome outcome) {
            which->asking.reset();
            if (which->terms.witness) {
                which->terms.witness->told(key, outcome);
            }
            if (which->finished) {
                if (outcome.lease) {
                    give_back(keys, which->terms, outcome.lease);
                }
                return;
            }
            if (outcome.lease) {
                which->turn = std::move(outcome.lease);
                begin(which);
                return;
            }
            if (outcome.error) {
                fail(which, outcome.error, std::move(outcome.detail));
                return;
            }
            once_outcome told;
            told.verdict = once_verdict::overlaps;
            told.holders = std::move(outcome.holders);
            end(which, std::move(told));
        });
}

void once::give_turn_back(const call_ptr& which) {
    if (const auto turn = std::exchange(which->turn, nullptr)) {
        give_back(keys_, which->terms, turn);
    }
}

/// An operator who holds the job means all of its slots. The slot's own key does not know of that, so it is looked at
/// right before the slot is asked for; a hold that comes in between counts from the next slot on.
bool once::put_off_by_hold(const call_ptr& which, const core::page& found) {
    if (found.error) {
        look_failed(which, found.error, found.detail);
        return true;
    }
    looks_are_over(which);
    if (found.records.empty() || found.records.front().blocked_for <= microseconds::zero()) {
        return false;
    }
    const auto& hold = found.records.front();
    if (const auto left = wait_left(*which); left > nanoseconds::zero()) {
        give_turn_back(which);
        const nanoseconds pause = std::min<nanoseconds>(hold.blocked_for, hold_looked_at_every);
        env_.time.arm(which->alarm, env_.time.now() + std::min(pause, left));
        return true;
    }
    once_outcome outcome;
    outcome.verdict = once_verdict::blocked;
    outcome.blocked_key = which->terms.job;
    outcome.blocked_reason = hold.blocked_reason;
    outcome.retry_after = hold.blocked_for;
    end(which, std::move(outcome));
    return true;
}

void once::ask(const call_ptr& which) {
    const auto& terms = which->terms;
    auto& mine = which->mine;
    mine = {};
    mine.job = terms.job;
    mine.slot = terms.slot;
    mine.attempt = 1 + (which->previous ? which->previous->attempt : 0);
    const bool anew = which->seen != 0 && which->by_order == which->seen;
    mine.failures = which->previous && !anew ? which->previous->failures : 0;
    mine.host = terms.who.host;
    mine.pid = terms.who.pid;
    mine.user = terms.who.user;
    mine.started_ms = now_();
    mine.begin_ms = terms.begin_ms || !which->previous ? terms.begin_ms : which->previous->begin_ms;
    mine.at_most_once = terms.at_most_once;
    auto asked = terms.acquire;
    asked.wait = wait_left(*which);
    asked.seen = which->seen;
    asked.mark = to_keep(terms, mine);
    // After a cancel this object may be gone; the keys are not.
    which->asking = keys_.acquire(key_of_slot(terms.job, terms.slot),
                                  std::move(asked),
                                  [this, &keys = keys_, which](mutex_outcome outcome) {
                                      which->asking.reset();
                                      if (!which->finished) {
                                          acquired(which, std::move(outcome));
                                      } else if (outcome.lease) {
                                          keys.release(outcome.lease,
                                                       as_before(which->terms, which->previous),
                                                       [](release_reply) {});
                                      }
                                  });
}

/// Reads what is kept, and ends the call, or puts it off, when nothing is left to be run now.
bool once::settled_by(const call_ptr& which, const core::kept_result& kept, bool nobody_holds) {
    bool newer = false;
    which->previous = slot_record_of(kept.value, newer);
    if (!which->previous) {
        fail(which,
             newer ? errc::newer_format : errc::store_damaged,
             newer ? "the slot's record was written by a newer release" : std::string(not_ours));
        return true;
    }
    // The outcome of a run that goes on will have the fence of its mark.
    which->seen = nobody_holds ? kept.fence : 0;
    if (nobody_holds && which->by_order == kept.fence) {
        return false;
    }
    const auto& found = *which->previous;
    const bool ended = found.state == slot_state::done || found.state == slot_state::failed;
    if (!ended && !nobody_holds) {
        return false;
    }
    // A run that may be started again is none that who asks for "at most once" may follow.
    if (is_final(found) || (which->terms.at_most_once && nobody_holds)) {
        once_outcome outcome;
        outcome.found = found;
        outcome.verdict =
            found.state == slot_state::done ? once_verdict::done : once_verdict::failed;
        end(which, std::move(outcome));
        return true;
    }
    const auto left = back_off_left(found,
                                    std::chrono::floor<milliseconds>(kept.age),
                                    which->terms.boot,
                                    boot_ms(env_.time.now()));
    return left > milliseconds::zero() && wait_out(which, left);
}

/// A failed run may be tried again after `left`: waits for that, or says so. Always true.
bool once::wait_out(const call_ptr& which, microseconds left) {
    if (const auto patience = wait_left(*which); patience > nanoseconds::zero()) {
        give_turn_back(which);
        const auto pause = std::min<nanoseconds>(left + milliseconds{1}, patience);
        env_.time.arm(which->alarm, env_.time.now() + pause);
        return true;
    }
    once_outcome outcome;
    outcome.found = which->previous;
    outcome.verdict = once_verdict::waiting;
    outcome.retry_after = left;
    end(which, std::move(outcome));
    return true;
}

void once::acquired(const call_ptr& which, mutex_outcome outcome) {
    if (outcome.error) {
        fail(which, outcome.error, std::move(outcome.detail));
        return;
    }
    once_outcome told;
    if (outcome.lease) {
        const auto& kept = outcome.result;
        // Our own mark is there when the store executed the request twice.
        if (kept && kept->fence > which->seen && kept->fence != outcome.lease->fence()) {
            // Something of another recipe, which is no longer fresh but may still be needed.
            keys_.release(outcome.lease, as_it_was(*kept), [](release_reply) {});
            fail(which, errc::store_damaged, std::string(not_ours));
            return;
        }
        told.verdict = once_verdict::granted;
        told.lease = std::move(outcome.lease);
        told.turn = std::move(which->turn);
        told.mine = which->mine;
        told.mine.started_ms = now_();
        told.found = which->previous;
    } else if (outcome.done) {
        if (!outcome.result) {
            fail(which, errc::store_damaged, "the store tells of a result that it does not show");
        } else if (!settled_by(which, *outcome.result, true)) {
            // Whoever was at it is gone, and left a slot that may be run: its attempt has the next number.
            look_for_hold(which);
        }
        return;
    } else if (outcome.blocked) {
        told.verdict = once_verdict::blocked;
        told.blocked_key = key_of_slot(which->terms.job, which->terms.slot);
        told.blocked_reason = std::move(outcome.blocked_reason);
        told.retry_after = outcome.retry_after;
    } else {
        told.verdict = once_verdict::running;
        told.holders = std::move(outcome.holders);
        told.found = which->previous;
    }
    end(which, std::move(told));
}

nanoseconds once::wait_left(const call& which) const {
    if (which.wait_until == instant::max()) {
        return nanoseconds::max();
    }
    return std::max(which.wait_until - env_.time.now(), nanoseconds::zero());
}

core::result_to_keep once::outcome_to_keep(const once_terms& terms, slot_record& mine) const {
    if (mine.state == slot_state::failed) {
        ++mine.failures;
        if (mine.failures <= terms.retries && !terms.at_most_once) {
            // Whoever asks counts the back-off.
            const auto pause =
                std::chrono::ceil<milliseconds>(backoff_after(terms.backoff, mine.failures));
            mine.next_at_ms = mine.ended_ms + pause.count();
            mine.boot = terms.boot;
            mine.ended_boot_ms = boot_ms(env_.time.now());
        }
    }
    return to_keep(terms, mine);
}

void once::finish(const lease_ptr& lease,
                  const once_terms& terms,
                  slot_record mine,
                  bool success,
                  int status,
                  mutex::release_completion done) {
    mine.status = status;
    mine.ended_ms = now_();
    auto failure = mine;
    failure.state = slot_state::failed;
    failure.lost = true;
    mine.state = success ? slot_state::done : slot_state::failed;
    auto failed = outcome_to_keep(terms, failure);
    keys_.release(lease,
                  outcome_to_keep(terms, mine),
                  [&keys = keys_,
                   lease,
                   asked = terms.acquire,
                   failed = std::move(failed),
                   done = std::move(done)](release_reply told) mutable {
                      // With an error, success may be kept: nothing is written over that.
                      if (told.released || told.error) {
                          done(std::move(told));
                          return;
                      }
                      leave_late_result(keys,
                                        lease,
                                        std::move(asked),
                                        std::move(failed),
                                        [told = std::move(told), done = std::move(done)](
                                            release_reply) mutable { done(std::move(told)); });
                  });
}

void once::interrupt(const lease_ptr& lease,
                     const once_terms& terms,
                     slot_record mine,
                     int status,
                     mutex::release_completion done) {
    mine.state = slot_state::interrupted;
    mine.status = status;
    mine.ended_ms = now_();
    keys_.release(lease, to_keep(terms, mine), std::move(done));
}

void once::withdraw(const lease_ptr& lease,
                    const once_terms& terms,
                    std::optional<slot_record> found,
                    mutex::release_completion done) {
    keys_.release(lease, as_before(terms, std::move(found)), std::move(done));
}

void once::cancel(const call_ptr& which, errc why) {
    if (which->finished) {
        return;
    }
    const auto asking = which->asking;
    fail(which, why, {});
    if (asking) {
        keys_.cancel(asking, why);
    }
}

void once::fail(const call_ptr& which, std::error_code error, std::string detail) {
    once_outcome outcome;
    outcome.error = error;
    outcome.detail = std::move(detail);
    end(which, std::move(outcome));
}

void once::end(const call_ptr& which, once_outcome outcome) {
    which->finished = true;
    env_.time.disarm(which->alarm);
    looks_are_over(which);
    give_turn_back(which);
    env_.exec.post([which, told = std::make_shared<once_outcome>(std::move(outcome))] {
        auto done = std::move(which->done);
        done(std::move(*told));
    });
}

}  // namespace dibs::recipes
