// SPDX-License-Identifier: Apache-2.0
#include "recipes/idempotent.hpp"

#include "recipes/late_result.hpp"

#include <dibs/error.hpp>

#include <algorithm>
#include <utility>

namespace dibs::recipes {

using core::instant;
using core::microseconds;
using core::nanoseconds;
using core::verdict;

namespace {

constexpr std::string_view not_ours = "the key keeps a result that is no idempotent call's";

core::result_to_keep to_keep(const idempotent_terms& terms, const idempotent_record& record) {
    return {.value = to_text(record), .fresh = terms.keep, .keep = terms.keep};
}

}  // namespace

class idempotent::call {
  public:
    call(idempotent_terms agreed, completion told)
        : terms(std::move(agreed)), done(std::move(told)) {}

    idempotent_terms terms;
    completion done;
    instant wait_until{};
    mutex::call_ptr asking;
    core::fence_number seen = 0;                ///< of the mark that may be passed over
    std::optional<idempotent_record> previous;  ///< that mark
    idempotent_record mine;
    bool waited = false;  ///< the latest try waited for as long as it may
    bool finished = false;
};

/// Work that is done, and whose answer is on its way to the store.
struct idempotent::ended {
    lease_ptr lease;
    idempotent_terms terms;
    core::result_to_keep kept;
    release_reply told;  ///< of the first try
    mutex::release_completion done;
};

idempotent::idempotent(core::environment env, core::batcher& batches, mutex& keys, calendar now)
    : env_(env), batcher_(batches), keys_(keys), now_(std::move(now)) {}

idempotent::~idempotent() = default;

idempotent::call_ptr idempotent::claim(idempotent_terms terms, completion done) {
    auto made = std::make_shared<call>(std::move(terms), std::move(done));
    const auto now = env_.time.now();
    const auto wait = made->terms.acquire.wait;
    made->wait_until = wait >= instant::max() - now ? instant::max() : now + wait;
    env_.exec.post([this, made] {
        if (!made->finished) {
            ask(made, nanoseconds::zero());
        }
    });
    return made;
}

/// The first try does not wait: whoever is at it may be at something else under the same key, and that is told at once.
void idempotent::ask(const call_ptr& which, nanoseconds wait) {
    const auto& terms = which->terms;
    auto& mine = which->mine;
    mine = {};
    mine.fingerprint = terms.fingerprint;
    mine.attempt = 1 + (which->previous ? which->previous->attempt : 0);
    mine.at_most_once = terms.at_most_once;
    mine.host = terms.who.host;
    mine.pid = terms.who.pid;
    mine.written_ms = now_();
    auto asked = terms.acquire;
    asked.wait = wait;
    asked.patient_until = which->wait_until;
    asked.seen = which->seen;
    asked.mark = to_keep(terms, mine);
    which->waited = wait > nanoseconds::zero();
    // After a cancel this object may be gone; the keys are not.
    which->asking = keys_.acquire(
        terms.key, std::move(asked), [this, &keys = keys_, which](mutex_outcome&& outcome) {
            which->asking.reset();
            if (!which->finished) {
                acquired(which, std::move(outcome));
            } else if (outcome.lease) {
                keys.release(outcome.lease, core::result_to_keep{}, [](release_reply) {});
            }
        });
}

nanoseconds idempotent::left_of(const call& which) const {
    return which.wait_until == instant::max() ? nanoseconds::max()
                                              : which.wait_until - env_.time.now();
}

void idempotent::acquired(const call_ptr& which, mutex_outcome outcome) {
    const auto left = left_of(*which);
    if (outcome.error == condition::retryable && !which->waited && left > nanoseconds::zero()) {
        ask(which, left);  // nothing was begun, and the store's trouble may pass
    } else if (outcome.error) {
        fail(which, outcome.error, std::move(outcome.detail));
    } else if (outcome.lease) {
        granted(which, std::move(outcome));
    } else {
        refused(which, std::move(outcome));
    }
}

void idempotent::granted(const call_ptr& which, mutex_outcome outcome) {
    const auto& found = outcome.result;
    const bool own = found && found->is_mark && found->fence == outcome.lease->fence();
    const bool passed_over = found && which->seen != 0 && found->fence <= which->seen;
    if (found && !own && !passed_over) {
        // Something of another recipe, which is no longer fresh but may still be needed.
        keys_.release(outcome.lease, as_it_was(*found), [](release_reply) {});
        fail(which, errc::store_damaged, std::string(not_ours));
        return;
    }
    idempotent_outcome told;
    told.verdict = idempotent_verdict::granted;
    told.lease = std::move(outcome.lease);
    told.mine = which->mine;
    told.found = which->previous;
    end(which, std::move(told));
}

void idempotent::refused(const call_ptr& which, mutex_outcome outcome) {
    if (outcome.result) {
        if (!settled_by(which, *outcome.result, outcome.done)) {
            wait_or_tell(which, std::move(outcome));
        }
    } else if (outcome.done) {
        fail(which, errc::store_damaged, "the store tells of a result that it does not show");
    } else {
        wait_or_tell(which, std::move(outcome));
    }
}

/// Reads what is kept. True: it ended the call, or the key was asked for once more.
bool idempotent::settled_by(const call_ptr& which,
                            const core::kept_result& kept,
                            bool nobody_holds) {
    bool newer = false;
    auto record = idempotent_record_of(kept.value, newer);
    if (!record) {
        // What is not fresh may be of somebody who holds the key for something else.
        if (kept.fresh || nobody_holds || newer) {
            fail(which,
                 newer ? errc::newer_format : errc::store_damaged,
                 newer ? "the answer was written by a newer release" : std::string(not_ours));
            return true;
        }
        return false;
    }
    idempotent_outcome told;
    if (record->fingerprint != which->terms.fingerprint) {
        told.verdict = idempotent_verdict::differs;
    } else if (record->state != idempotent_state::begun) {
        told.verdict = idempotent_verdict::answered;
    } else if (!nobody_holds) {
        return false;
    } else if (record->at_most_once || which->terms.at_most_once) {
        told.verdict = idempotent_verdict::in_doubt;
    } else {
        which->seen = std::max(which->seen, kept.fence);
        which->previous = std::move(record);
        env_.exec.post([this, which] {
            if (!which->finished) {
                ask(which, nanoseconds::zero());
            }
        });
        return true;
    }
    told.found = std::move(record);
    end(which, std::move(told));
    return true;
}

void idempotent::wait_or_tell(const call_ptr& which, mutex_outcome outcome) {
    const auto left = left_of(*which);
    if (left > nanoseconds::zero() && !which->waited) {
        ask(which, left);
        return;
    }
    idempotent_outcome told;
    told.verdict = outcome.blocked ? idempotent_verdict::blocked : idempotent_verdict::in_flight;
    told.holders = std::move(outcome.holders);
    told.blocked_reason = std::move(outcome.blocked_reason);
    told.retry_after = outcome.retry_after;
    end(which, std::move(told));
}

void idempotent::finish(const lease_ptr& lease,
                        const idempotent_terms& terms,
                        idempotent_record mine,
                        mutex::release_completion done) {
    mine.written_ms = now_();
    auto ending = std::make_shared<ended>();
    ending->lease = lease;
    ending->terms = terms;
    ending->kept = to_keep(terms, mine);
    ending->done = std::move(done);
    keys_.release(lease, ending->kept, [this, ending](release_reply told) {
        if (told.released) {
            ending->done(std::move(told));
        } else {
            ending->told = std::move(told);
            keep_late(ending);
        }
    });
}

/// The lease is over. As long as nobody else got the key, the answer is taken all the same.
void idempotent::keep_late(const ended_ptr& which) {
    core::release asked;
    asked.key = which->terms.key;
    asked.holder = which->lease->holder;
    asked.result = which->kept;
    asked.late = true;
    const auto patience = which->terms.acquire.timeout;
    batcher_.submit(std::move(asked),
                    patience,
                    env_.time.now() + patience,
                    [this, which, first = true](const core::reply& heard) mutable {
                        if (!std::exchange(first, false)) {
                            return;
                        }
                        if (heard.given.what == verdict::finished) {
                            which->done({.released = true, .error = {}, .detail = {}});
                        } else if (heard.given.took == core::effect::yes &&
                                   heard.given.lost == core::loss::taken) {
                            which->done(std::move(which->told));
                        } else {
                            leave_late(which);
                        }
                    });
}

void idempotent::leave_late(const ended_ptr& which) {
    leave_late_result(
        keys_, which->lease, which->terms.acquire, which->kept, [which](release_reply told) {
            if (!told.released && which->told.error) {
                told = std::move(which->told);
            }
            which->done(std::move(told));
        });
}

void idempotent::abandon(const lease_ptr& lease, mutex::release_completion done) {
    keys_.release(lease, core::result_to_keep{}, std::move(done));
}

void idempotent::cancel(const call_ptr& which, errc why) {
    if (which->finished) {
        return;
    }
    const auto asking = which->asking;
    fail(which, why, {});
    if (asking) {
        keys_.cancel(asking, why);
    }
}

void idempotent::fail(const call_ptr& which, std::error_code error, std::string detail) {
    idempotent_outcome outcome;
    outcome.error = error;
    outcome.detail = std::move(detail);
    end(which, std::move(outcome));
}

void idempotent::end(const call_ptr& which, idempotent_outcome outcome) {
    which->finished = true;
    env_.exec.post([which, told = std::make_shared<idempotent_outcome>(std::move(outcome))] {
        auto done = std::move(which->done);
        done(std::move(*told));
    });
}

}  // namespace dibs::recipes
