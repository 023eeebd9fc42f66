// SPDX-License-Identifier: Apache-2.0
// What was brought goes to the store, under the lease or, late, without it; and is taken away on request.
#include "recipes/cached/cached_parts.hpp"

#include <algorithm>
#include <utility>

namespace dibs::recipes {

using core::verdict;

namespace {

/// Outcomes are kept so much longer than they matter, for people who look.
constexpr microseconds kept_for_people = std::chrono::hours{1};

microseconds plus(microseconds one, microseconds other) {
    return one >= cached_record::unlimited - other ? cached_record::unlimited : one + other;
}

}  // namespace

void cached_value::keep(const flight_ptr& which) {
    keys_.release(which->lease,
                  to_keep(which->brought, which->fresh),
                  [this, alive = alive_, which](release_reply told) {
                      if (!*alive) {
                          return;
                      }
                      if (told.released) {
                          kept(which);
                      } else if (which->good) {
                          keep_late(which);
                      } else {
                          // Without the lease a failure tells nothing: somebody else may have fetched since.
                          land(which);
                      }
                  });
}

/// The lease is over. As long as nobody else got the key, what was brought is taken all the same.
void cached_value::keep_late(const flight_ptr& which) {
    core::release asked;
    asked.key = terms_.key;
    asked.holder = which->lease->holder;
    asked.result = to_keep(which->brought, which->fresh);
    asked.late = true;
    const auto patience = terms_.acquire.timeout;
    batcher_.submit(std::move(asked),
                    patience,
                    env_.time.now() + patience,
                    [this, alive = alive_, which, first = true](const core::reply& heard) mutable {
                        if (!*alive || !std::exchange(first, false)) {
                            return;
                        }
                        if (heard.given.what == verdict::finished) {
                            kept(which);
                        } else {
                            keep_under_another_lease(which);
                        }
                    });
}

void cached_value::keep_under_another_lease(const flight_ptr& which) {
    auto terms = terms_.acquire;
    terms.wait = 2 * terms.lease.ttl;
    terms.mark.reset();
    terms.seen = all_seen;
    keys_.acquire(
        terms_.key,
        std::move(terms),
        [this, alive = alive_, &keys = keys_, which](mutex_outcome&& outcome) {
            if (!*alive) {
                if (outcome.lease) {
                    keys.release(outcome.lease, [](release_reply) {});
                }
                return;
            }
            if (!outcome.lease || outcome.sent == instant{}) {
                if (outcome.lease) {
                    keys_.release(outcome.lease, [](release_reply) {});
                }
                not_kept(which, outcome.error ? outcome.error : errc::lease_taken, outcome.detail);
                return;
            }
            auto fault = cached_fault::none;
            const auto there =
                outcome.result ? cached_record_of(outcome.result->value, terms_.key, seal_, fault)
                               : std::nullopt;
            const bool newer =
                fault != cached_fault::none ||
                (there && there->has_value() && there->generation >= which->brought.generation);
            if (newer) {
                keys_.release(outcome.lease, [](release_reply) {});
                if (read(outcome.result, outcome.sent)) {
                    serve_by_what_is_known(false);
                }
                land(which);
                return;
            }
            which->lease = outcome.lease;
            which->brought.value_fence = which->lease->fence();
            keys_.release(
                which->lease,
                to_keep(which->brought, which->fresh),
                [this, alive, which](release_reply told) {
                    if (!*alive) {
                        return;
                    }
                    if (told.released) {
                        kept(which);
                    } else {
                        not_kept(which, told.error ? told.error : errc::lease_expired, told.detail);
                    }
                });
        });
}

void cached_value::kept(const flight_ptr& which) {
    know(*which);
    serve_by_what_is_known(which->good);
    land(which);
}

void cached_value::know(const flight& which) {
    auto made = std::make_unique<reading>();
    made->record = which.brought;
    made->fence = which.lease->fence();
    made->since = env_.time.now();
    made->written = made->since;
    made->fresh_until = after(made->since, which.fresh);
    made->looked_at = made->since;
    known_ = std::move(made);
}

/// A value can do without the store, a credential cannot: without it nobody can fetch the next one.
void cached_value::not_kept(const flight_ptr& which, std::error_code error, std::string detail) {
    if (at_stake(which->brought)) {
        credential_lost_ =
            "the new value and its credential were fetched, but could not be stored: " +
            (detail.empty() ? error.message() : detail);
        fail_all(error, credential_lost_);
        land(which);
        return;
    }
    kept(which);
}

void cached_value::land(const flight_ptr& which) {
    if (flight_ == which) {
        flight_.reset();
    }
    if (landed_) {
        std::exchange(landed_, {})(credential_lost_);
    }
    arm();
    const bool somebody_waits = std::any_of(calls_.begin(), calls_.end(), [this](const auto& one) {
        return !(too_early() && known_->record.value_fence > one->wish.seen);
    });
    if (somebody_waits) {
        env_.exec.post([this, alive = alive_] {
            if (*alive) {
                fly();
            }
        });
    }
}

void cached_value::forget(nanoseconds wait, completion done) {
    auto terms = terms_.acquire;
    terms.wait = wait;
    terms.mark.reset();
    terms.seen = all_seen;
    keys_.acquire(
        terms_.key,
        std::move(terms),
        [this, alive = alive_, &keys = keys_, done = std::move(done)](
            mutex_outcome&& outcome) mutable {
            cached_outcome told;
            told.error = outcome.error;
            told.detail = std::move(outcome.detail);
            auto fault = cached_fault::none;
            if (!outcome.lease) {
                told.verdict = outcome.error ? cached_verdict::trouble : cached_verdict::busy;
                told.holders = std::move(outcome.holders);
                if (outcome.blocked) {
                    told.detail = on_hold(outcome.blocked_reason);
                }
                done(std::move(told));
            } else if (outcome.result && !cached_outline_of(outcome.result->value, fault)) {
                keys.release(outcome.lease, [](release_reply) {});
                const bool newer = fault == cached_fault::newer;
                told.error = newer ? errc::newer_format : errc::store_damaged;
                told.detail = newer ? newer_release : no_shared_value;
                done(std::move(told));
            } else {
                keys.release(outcome.lease,
                             core::result_to_keep{},
                             [this, alive, told = std::move(told), done = std::move(done)](
                                 release_reply heard) mutable {
                                 if (*alive) {
                                     known_.reset();
                                 }
                                 told.verdict = heard.released ? cached_verdict::value
                                                               : cached_verdict::trouble;
                                 told.error = heard.error;
                                 told.detail = std::move(heard.detail);
                                 if (!heard.released && !heard.error) {
                                     told.error = errc::lease_expired;
                                 }
                                 done(std::move(told));
                             });
            }
        });
}

/// What is known, as it would be written now.
cached_record cached_value::present() const {
    if (!known_) {
        return {};
    }
    return aged(known_->record, std::chrono::ceil<microseconds>(env_.time.now() - known_->since));
}

microseconds cached_value::pause_after(unsigned failures) {
    auto pause = terms_.backoff;
    for (unsigned doubled = 0; doubled < failures && pause < terms_.longest_backoff; ++doubled) {
        pause *= 2;
    }
    return spread(std::min(pause, terms_.longest_backoff), 200);
}

bool cached_value::at_stake(const cached_record& record) const noexcept {
    return terms_.rotates || !record.successor.empty();
}

core::result_to_keep cached_value::to_keep(const cached_record& record, microseconds fresh) {
    auto written = record;
    written.host = terms_.who.host;
    written.pid = terms_.who.pid;
    written.written_ms = now_();
    core::result_to_keep kept;
    kept.value = to_text(written, terms_.key, seal_);
    kept.fresh = fresh;
    kept.keep = at_stake(record)
                    ? core::result_to_keep::forever
                    : plus(std::max({record.has_value() ? record.life : microseconds::zero(),
                                     record.pause,
                                     fresh}),
                           kept_for_people);
    return kept;
}

}  // namespace dibs::recipes
