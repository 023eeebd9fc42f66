// SPDX-License-Identifier: Apache-2.0
#include "recipes/cached_value.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace dibs::recipes {

using core::instant;
using core::microseconds;
using core::milliseconds;
using core::nanoseconds;
using core::verdict;

namespace {

/// Counts every result as not fresh. The largest that each store can compare.
constexpr core::fence_number all_seen = 9'007'199'254'740'991;
constexpr nanoseconds shortest_timeout = milliseconds{50};
const std::string newer_release = "the value was written by a newer release";
const std::string no_shared_value = "the key keeps a result that is not a shared value";

std::string on_hold(const std::string& reason) {
    return "on hold by an operator: " + reason;
}

/// What ends a call at its deadline is what the store says then; this much later it is ended without that.
constexpr nanoseconds grace_at_the_end = milliseconds{100};
/// Who has a valid value waits no longer than this to hear whether there is a newer one.
constexpr nanoseconds patience_with_a_value = milliseconds{500};
/// Outcomes are kept so much longer than they matter, for people who look.
constexpr microseconds kept_for_people = std::chrono::hours{1};

instant after(instant since, nanoseconds span) {
    return span >= instant::max() - since ? instant::max() : since + span;
}

instant after(instant since, microseconds span) {
    return span >= std::chrono::duration_cast<microseconds>(instant::max() - since) ? instant::max()
                                                                                    : since + span;
}

microseconds plus(microseconds one, microseconds other) {
    return one >= cached_record::unlimited - other ? cached_record::unlimited : one + other;
}

/// Providers quote what they were given, and why a fetch failed is shown to everybody.
void blank(std::string& text, const std::string& secret) {
    constexpr std::size_t shortest = 4;
    constexpr std::string_view instead = "***";
    if (secret.size() < shortest) {
        return;
    }
    for (auto at = text.find(secret); at != std::string::npos;
         at = text.find(secret, at + instead.size())) {
        text.replace(at, secret.size(), instead);
    }
}

}  // namespace

class cached_value::call {
  public:
    call(cached_wish wanted, completion told, instant now)
        : wish(wanted), done(std::move(told)), since(now) {
        until = wish.wait >= instant::max() - now ? instant::max() : now + wish.wait;
    }

    cached_wish wish;
    completion done;
    const instant since;
    instant until;
    bool finished = false;
};

struct cached_value::reading {
    cached_record record;  ///< its spans as of `since`
    std::string text;      ///< as it is in the store
    core::fence_number fence = 0;
    bool intent = false;  ///< a mark: nobody has told how that fetch ended
    instant since{};
    instant written{};
    instant fresh_until{};
    instant looked_at{};

    [[nodiscard]] instant valid_until() const {
        return record.has_value() ? after(since, record.life) : instant{};
    }
};

struct cached_value::flight {
    mutex::call_ptr asking;
    lease_ptr lease;
    core::fence_number seen = 0;
    instant fetch_began{};
    bool fetching = false;
    cached_record brought;  ///< on its way to the store
    microseconds fresh{};
    bool good = false;  ///< `brought` has a new value
    std::vector<core::holder_info> holders;
};

cached_value::cached_value(core::environment env,
                           store::store& through,
                           core::batcher& batches,
                           mutex& keys,
                           cached_terms terms,
                           sealer* seal,
                           fetcher fetch,
                           calendar now)
    : env_(env),
      store_(through),
      batcher_(batches),
      keys_(keys),
      terms_(std::move(terms)),
      seal_(seal),
      fetch_(std::move(fetch)),
      now_(std::move(now)),
      alarm_([this] { on_alarm(); }) {}

cached_value::~cached_value() {
    *alive_ = false;
}

// --- callers -------------------------------------------------------------------------------------

bool cached_value::valid(const cached_wish& wish) const {
    return known_ && known_->record.has_value() && known_->record.value_fence > wish.seen &&
           env_.time.now() < known_->valid_until();
}

bool cached_value::lasts(const cached_wish& wish) const {
    return valid(wish) && after(env_.time.now(), wish.min_life) <= known_->valid_until();
}

/// Between two fetches lies some time, however short a value lasts.
bool cached_value::too_early() const {
    return known_ && known_->record.state == cached_state::good &&
           env_.time.now() < after(known_->written, terms_.floor);
}

bool cached_value::needs_no_asking(const cached_wish& wish) const {
    const auto now = env_.time.now();
    return lasts(wish) && now < known_->fresh_until &&
           now < after(known_->looked_at, terms_.looked_at_every);
}

cached_value::call_ptr cached_value::get(cached_wish wish, completion done) {
    auto made = std::make_shared<call>(wish, std::move(done), env_.time.now());
    if (closed_) {
        cached_outcome outcome;
        outcome.error = errc::closed;
        end(made, std::move(outcome));
        return made;
    }
    const bool being_fetched = flight_ && flight_->fetching && terms_.background;
    if (needs_no_asking(wish) || (being_fetched && valid(wish))) {
        tell_value(made);
        return made;
    }
    calls_.push_back(made);
    arm();
    env_.exec.post([this, alive = alive_] {
        if (*alive) {
            fly();
        }
    });
    return made;
}

void cached_value::cancel(const call_ptr& which, errc why) {
    if (which->finished) {
        return;
    }
    cached_outcome outcome;
    outcome.error = why;
    end(which, std::move(outcome));
    arm();
}

void cached_value::close(core::unique_function<void(std::string)> landed) {
    closed_ = true;
    fail_all(errc::closed, {});
    if (flight_ && flight_->asking) {
        keys_.cancel(flight_->asking, errc::closed);
    }
    if (carries_credential()) {
        landed_ = std::move(landed);
    } else {
        landed(credential_lost_);
    }
}

bool cached_value::carries_credential() const {
    return flight_ && flight_->good && at_stake(flight_->brought);
}

void cached_value::end(const call_ptr& which, cached_outcome outcome) {
    which->finished = true;
    calls_.remove(which);
    env_.exec.post([which, told = std::make_shared<cached_outcome>(std::move(outcome))] {
        auto done = std::move(which->done);
        done(std::move(*told));
    });
}

void cached_value::tell_value(const call_ptr& which) {
    cached_outcome outcome;
    outcome.verdict = cached_verdict::value;
    outcome.value = known_->record.value;
    outcome.fence = known_->record.value_fence;
    outcome.generation = known_->record.generation;
    outcome.valid_until = known_->valid_until();
    outcome.good_until = std::min({known_->fresh_until,
                                   known_->valid_until(),
                                   after(known_->looked_at, terms_.looked_at_every)});
    end(which, std::move(outcome));
}

void cached_value::tell_busy(const call_ptr& which) {
    cached_outcome outcome;
    outcome.verdict = cached_verdict::busy;
    if (flight_) {
        outcome.holders = flight_->holders;
        outcome.detail = carries_credential() ? "this process has it, and is storing it"
                         : flight_->fetching  ? "this process is fetching it"
                                              : "";
    }
    end(which, std::move(outcome));
}

void cached_value::serve(const std::function<bool(const cached_wish&)>& whom) {
    const auto all = calls_;
    for (const auto& one : all) {
        if (whom(one->wish)) {
            tell_value(one);
        }
    }
    arm();
}

/// A store that is silent has its time with each call.
void cached_value::fail(std::error_code error, const std::string& detail) {
    const auto now = env_.time.now();
    const bool silent = error == errc::timed_out || error == condition::outcome_unknown;
    const auto all = calls_;
    for (const auto& one : all) {
        if (!silent || now >= one->until || now - one->since >= terms_.acquire.timeout) {
            cached_outcome outcome;
            outcome.error = error;
            outcome.detail = detail;
            end(one, std::move(outcome));
        }
    }
    arm();
}

void cached_value::fail_all(std::error_code error, const std::string& detail) {
    const auto all = calls_;
    for (const auto& one : all) {
        cached_outcome outcome;
        outcome.error = error;
        outcome.detail = detail;
        end(one, std::move(outcome));
    }
    arm();
}

/// Ends the calls for which the record tells all there is to tell. The others are for another flight.
void cached_value::serve_by_what_is_known(bool just_fetched) {
    if (!known_) {
        return;
    }
    const auto now = env_.time.now();
    const auto& record = known_->record;
    const bool given_up =
        record.state == cached_state::failing || record.state == cached_state::refused;
    const auto all = calls_;
    for (const auto& one : all) {
        if (lasts(one->wish) || (valid(one->wish) && (given_up || just_fetched || too_early()))) {
            tell_value(one);
        } else if (given_up && now < known_->fresh_until) {
            cached_outcome outcome;
            outcome.verdict = record.state == cached_state::refused ? cached_verdict::refused
                                                                    : cached_verdict::failing;
            outcome.detail = record.trouble;
            outcome.fence = record.value_fence;
            outcome.retry_after = known_->fresh_until == instant::max()
                                      ? cached_record::unlimited
                                      : std::chrono::ceil<microseconds>(known_->fresh_until - now);
            end(one, std::move(outcome));
        }
    }
    arm();
}

void cached_value::arm() {
    auto due = instant::max();
    for (const auto& one : calls_) {
        due = std::min(due, after(one->until, grace_at_the_end));
        if (valid(one->wish) && terms_.background) {
            due = std::min(due, one->since + patience_with_a_value);
        }
    }
    if (!flight_ && !calls_.empty() && known_) {
        due = std::min(due, std::max(after(known_->written, terms_.floor), env_.time.now()));
    }
    if (due == instant::max()) {
        env_.time.disarm(alarm_);
    } else {
        env_.time.arm(alarm_, due);
    }
}

void cached_value::on_alarm() {
    const auto now = env_.time.now();
    const auto all = calls_;
    const auto is_over = [&](const call_ptr& one) {
        return now >= after(one->until, grace_at_the_end);
    };
    // It was fetched, and a store that does not take it is no reason to withhold it.
    if (flight_ && flight_->good && !at_stake(flight_->brought) &&
        std::any_of(all.begin(), all.end(), is_over)) {
        know(*flight_);
    }
    for (const auto& one : all) {
        const bool over = is_over(one);
        const bool patient_enough = terms_.background && now >= one->since + patience_with_a_value;
        if (valid(one->wish) && (over || patient_enough)) {
            tell_value(one);
        } else if (over) {
            tell_busy(one);
        }
    }
    arm();
    fly();
}

// --- a flight ------------------------------------------------------------------------------------

void cached_value::fly() {
    if (flight_ || closed_ || calls_.empty()) {
        return;
    }
    flight_ = std::make_shared<flight>();
    for (const auto& one : calls_) {
        flight_->seen = std::max(flight_->seen, one->wish.seen);
        // What is there is good, but not for long enough.
        if (known_ && known_->record.state == cached_state::good && valid(one->wish) &&
            !lasts(one->wish) && !too_early()) {
            flight_->seen = std::max(flight_->seen, known_->fence);
        }
    }
    ask(flight_, false);
}

void cached_value::ask(const flight_ptr& which, bool with_intent) {
    const auto now = env_.time.now();
    auto terms = terms_.acquire;
    terms.seen = which->seen;
    terms.wait = nanoseconds::zero();
    terms.mark.reset();
    if (with_intent) {
        auto intent = present();
        intent.state = cached_state::fetching;
        terms.mark = to_keep(intent, microseconds::zero());
    } else if (looked_) {
        // Whoever has to be told first; the others ask again.
        auto first = instant::max();
        for (const auto& one : calls_) {
            if (!valid(one->wish)) {
                first = std::min(first, one->until);
            }
        }
        if (first != instant::max()) {
            terms.wait = std::max(nanoseconds::zero(), first - now);
        }
    }
    for (const auto& one : calls_) {
        terms.timeout = std::min(terms.timeout, std::max(shortest_timeout, one->until - now));
    }
    which->asking = keys_.acquire(
        terms_.key,
        std::move(terms),
        [this, alive = alive_, &keys = keys_, which, with_intent](mutex_outcome&& outcome) {
            which->asking.reset();
            if (*alive) {
                answered(which, with_intent, std::move(outcome));
            } else if (outcome.lease) {
                keys.release(outcome.lease, [](release_reply) {});
            }
        });
}

void cached_value::answered(const flight_ptr& which, bool with_intent, mutex_outcome outcome) {
    which->lease = std::move(outcome.lease);
    if (outcome.error) {
        serve([this](const auto& wish) { return valid(wish); });
        fail(outcome.error, outcome.detail);
        land(which);
        return;
    }
    if (which->lease && outcome.sent == instant{}) {
        // From another caller of this process: nobody has told what the store has.
        read_under_lease(which, with_intent);
        return;
    }
    looked_ = true;
    const auto before = known_ ? known_->text : std::string{};
    const bool own_intent = which->lease && outcome.result && outcome.result->is_mark &&
                            outcome.result->fence == which->lease->fence();
    if (!own_intent && !read(outcome.result, outcome.sent)) {
        if (which->lease && with_intent) {
            give_back(which, *outcome.result);
        } else if (which->lease) {
            keys_.release(which->lease, [](release_reply) {});
        }
        land(which);
        return;
    }
    if (which->lease) {
        const bool as_intended = own_intent || (known_ ? known_->text : std::string{}) == before;
        if (with_intent && !as_intended) {
            give_back(which, *outcome.result);
            land(which);
        } else {
            granted(which, with_intent);
        }
        return;
    }
    which->holders = std::move(outcome.holders);
    if (outcome.done) {
        serve_by_what_is_known(false);
        land(which);
        return;
    }
    serve([this](const auto& wish) { return valid(wish); });
    const auto all = calls_;
    for (const auto& one : all) {
        if (outcome.blocked) {
            cached_outcome told;
            told.verdict = cached_verdict::busy;
            told.detail = on_hold(outcome.blocked_reason);
            end(one, std::move(told));
        } else if (!with_intent && env_.time.now() >= one->until) {
            tell_busy(one);
        }
    }
    land(which);
}

/// False: it is nothing that can be used, and all callers were told so.
bool cached_value::read(const std::optional<core::kept_result>& found, instant sent) {
    if (!found) {
        known_.reset();
        return true;
    }
    auto fault = cached_fault::none;
    auto record = cached_record_of(found->value, terms_.key, seal_, fault);
    if (!record) {
        switch (fault) {
            case cached_fault::newer:
                fail_all(errc::newer_format, newer_release);
                break;
            case cached_fault::sealed:
                fail_all(errc::permission_denied,
                         "the value is sealed, and none of the keys given opens it");
                break;
            default:
                fail_all(errc::store_damaged, no_shared_value);
                break;
        }
        return false;
    }
    auto made = std::make_unique<reading>();
    made->record = aged(std::move(*record), found->age);
    made->text = found->value;
    made->fence = found->fence;
    made->intent = found->is_mark;
    if (made->record.state == cached_state::good) {
        made->record.value_fence = found->fence;  // which is what a store compares with `seen`
    }
    made->since = sent;
    made->written = sent - found->age;
    made->fresh_until = after(sent, found->fresh_left);
    made->looked_at = env_.time.now();
    known_ = std::move(made);
    doubt_what_was_seen(known_->fence, known_->record.value_fence);
    return true;
}

/// Fences rise, so one that is larger than what is kept was never told with a value of this store: a slip, or one from
/// before the store was emptied and its clock set back. What is kept now is what such a caller does not want; without
/// this no fetch could ever bring what it wants.
void cached_value::doubt_what_was_seen(core::fence_number known, core::fence_number of_value) {
    for (const auto& one : calls_) {
        if (one->wish.seen > known) {
            one->wish.seen = of_value;
        }
    }
}

/// Nobody has seen a value refused whose fetch began after he asked.
void cached_value::take_for_unseen(core::fence_number from) {
    for (const auto& one : calls_) {
        one->wish.seen = std::min(one->wish.seen, from - 1);
    }
}

void cached_value::read_under_lease(const flight_ptr& which, bool with_intent) {
    const auto sent = env_.time.now();
    store_.list(terms_.key,
                {},
                1,
                [this, alive = alive_, &keys = keys_, which, with_intent, sent](core::page page) {
                    if (!*alive) {
                        keys.release(which->lease, [](release_reply) {});
                        return;
                    }
                    std::optional<core::kept_result> found;
                    if (!page.records.empty() && page.records.front().key == terms_.key) {
                        found = std::move(page.records.front().result);
                    }
                    if (page.error) {
                        fail_all(page.error, page.detail);
                    }
                    if (page.error || !read(found, sent)) {
                        keys_.release(which->lease, [](release_reply) {});
                        land(which);
                    } else if (found && found->fresh && found->fence > which->seen) {
                        keys_.release(which->lease, [](release_reply) {});
                        serve_by_what_is_known(false);
                        land(which);
                    } else {
                        granted(which, with_intent);
                    }
                });
}

void cached_value::granted(const flight_ptr& which, bool with_intent) {
    const auto record = present();
    if (with_intent) {
        begin_fetch(which);
    } else if (!at_stake(record)) {
        begin_fetch(which);
    } else if (known_ && known_->intent && !terms_.retry_after_doubt) {
        failed(
            which,
            cached_state::refused,
            cached_record::unlimited,
            "a fetch by " + record.host + " (pid " + std::to_string(record.pid) +
                ") was begun and has not ended; whether it has used up the credential is unknown");
    } else {
        // The intent says what was there, so that had to be read first.
        const auto lease = std::exchange(which->lease, nullptr);
        keys_.release(lease, [this, alive = alive_, which](release_reply told) {
            if (!*alive) {
                return;
            }
            if (told.error) {
                fail_all(told.error, told.detail);
                land(which);
            } else {
                ask(which, true);
            }
        });
    }
}

/// Our intent has replaced what somebody has left since it was read.
void cached_value::give_back(const flight_ptr& which, const core::kept_result& found) {
    core::result_to_keep again;
    auto fault = cached_fault::none;
    const auto record = cached_record_of(found.value, terms_.key, seal_, fault);
    again.value = record ? to_text(aged(*record, found.age), terms_.key, seal_) : found.value;
    again.fresh = found.fresh_left;
    again.keep = std::max(found.keep_left, found.fresh_left);
    keys_.release(which->lease, std::move(again), [](release_reply) {});
}

void cached_value::begin_fetch(const flight_ptr& which) {
    which->fetching = true;
    which->fetch_began = env_.time.now();
    if (terms_.background) {
        serve([this](const auto& wish) { return valid(wish); });
    }
    fetch_request request;
    request.fence = which->lease->fence();
    request.lease = which->lease;
    take_for_unseen(request.fence);
    if (known_) {
        request.previous = known_->record;
    }
    fetch_(std::move(request), [this, alive = alive_, which](fetched brought) {
        if (*alive) {
            ended(which, std::move(brought));
        }
    });
}

void cached_value::ended(const flight_ptr& which, fetched brought) {
    if (brought.how != fetched::ending::good) {
        fell_short(which, std::move(brought));
        return;
    }
    auto made = present();
    const auto took = std::chrono::ceil<microseconds>(env_.time.now() - which->fetch_began);
    const auto life = std::max(brought.life, microseconds::zero());
    made.state = cached_state::good;
    ++made.generation;
    made.value_fence = which->lease->fence();
    made.value = std::move(brought.value);
    if (brought.successor && !brought.successor->empty()) {
        made.successor = std::move(*brought.successor);
    }
    made.life =
        life == cached_record::unlimited ? life : std::max(microseconds::zero(), life - took);
    made.pause = microseconds::zero();
    made.failures = 0;
    made.trouble.clear();
    which->fresh = cached_record::unlimited;
    if (life != cached_record::unlimited) {
        const auto due = spread(life / 1000 * terms_.refresh_permille, 50);
        which->fresh = std::max(terms_.floor, due - took);
    }
    if (made.life <= microseconds::zero()) {
        // Its credential counts all the same.
        made.state = cached_state::failing;
        made.pause = pause_after(known_ ? known_->record.failures : 0);
        made.failures = known_ ? known_->record.failures + 1 : 1;
        made.trouble = "the value that was fetched had run out when it came";
        which->fresh = made.pause;
    }
    which->good = true;
    which->brought = std::move(made);
    keep(which);
}

void cached_value::fell_short(const flight_ptr& which, fetched brought) {
    const auto before = present();
    blank(brought.trouble, before.successor);
    blank(brought.trouble, before.value);
    if (brought.how == fetched::ending::refused) {
        failed(which, cached_state::refused, terms_.refused_for, std::move(brought.trouble));
        return;
    }
    if (brought.how == fetched::ending::unknown && at_stake(before) && !terms_.retry_after_doubt) {
        failed(which,
               cached_state::refused,
               cached_record::unlimited,
               brought.trouble + "; whether the fetch has used up the credential is unknown");
        return;
    }
    auto pause = pause_after(before.failures);
    if (brought.retry_after) {
        pause = std::max(pause, std::min(*brought.retry_after, terms_.longest_pause));
    }
    failed(which, cached_state::failing, pause, std::move(brought.trouble));
}

void cached_value::failed(const flight_ptr& which,
                          cached_state how,
                          microseconds pause,
                          std::string why) {
    which->brought = present();
    which->brought.state = how;
    which->brought.pause = pause;
    which->brought.failures += 1;
    which->brought.trouble = std::move(why);
    which->fresh = pause;
    keep(which);
}

// --- what was brought goes to the store ----------------------------------------------------------

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

// --- records -------------------------------------------------------------------------------------

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

/// Up to so many thousandths less or more, so that processes do not fetch in step.
microseconds cached_value::spread(microseconds span, unsigned permille) {
    std::array<std::byte, 4> drawn{};
    env_.random.fill(drawn);
    std::uint32_t number = 0;
    std::memcpy(&number, drawn.data(), sizeof number);
    if (span == cached_record::unlimited) {
        return span;
    }
    const auto thousandths =
        static_cast<std::int64_t>(1000 - permille + number % (2 * permille + 1));
    return span / 1000 * thousandths;
}

}  // namespace dibs::recipes
