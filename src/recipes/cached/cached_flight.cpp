// SPDX-License-Identifier: Apache-2.0
// A flight: the key is asked for, what it keeps is read, and whoever is granted the lease fetches.
#include "recipes/cached/cached_parts.hpp"

#include <algorithm>
#include <utility>

namespace dibs::recipes {

using core::milliseconds;
using core::verdict;

namespace {

constexpr nanoseconds shortest_timeout = milliseconds{50};

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

void cached_value::fly() {
    if (flight_ || closed_ || calls_.empty() || rests()) {
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
    terms.patient_until = instant::max();
    terms.awaits_result = true;
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
        fail({outcome.error, std::move(outcome.detail)});
        land(which);
        return;
    }
    trouble_ = {};
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
bool cached_value::read(const core::boxed<core::kept_result>& found, instant sent) {
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
                    core::boxed<core::kept_result> found;
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

}  // namespace dibs::recipes
