// SPDX-License-Identifier: Apache-2.0
#include "client/recipes/shared_value.hpp"

#include "client/complaint.hpp"
#include "client/host/boot_time_source.hpp"
#include "client/host/host_clock.hpp"
#include "core/duration.hpp"
#include "core/key.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace dibs::detail {

namespace {

using recipes::cached_outcome;
using recipes::cached_verdict;
using recipes::cached_wish;

/// A fetch may fail with a text as long as a web page.
constexpr std::size_t longest_trouble = 500;

/// Of an outcome that is `busy`.
std::string who_fetches(const cached_outcome& outcome) {
    if (outcome.holders.empty()) {
        return outcome.detail.empty() ? "" : "; " + outcome.detail;
    }
    const auto& who = outcome.holders.front().who;
    return "; " + core::printable(who.host) + " (pid " + std::to_string(who.pid) +
           ") is fetching it";
}

struct get_state {
    recipes::cached_value::call_ptr call;
    bool cancelled = false;
};

}  // namespace

shared_value::shared_value(std::shared_ptr<client_core> core,
                           recipes::cached_terms terms,
                           std::unique_ptr<recipes::sealer> seal,
                           blocking_fetch fetch)
    : core_(std::move(core)), key_(terms.key), seal_(std::move(seal)), fetch_(std::move(fetch)) {
    core_->run([&](core::task done) {
        recipe_ = std::make_unique<recipes::cached_value>(
            core_->env(),
            core_->store(),
            core_->batcher(),
            core_->mutex(),
            std::move(terms),
            seal_.get(),
            [this](recipes::fetch_request request,
                   core::unique_function<void(recipes::fetched)> brought) {
                begin_fetch(std::move(request), std::move(brought));
            },
            calendar_ms);
        done();
    });
}

shared_value::~shared_value() {
    (void)finish();
    core_->run([this](core::task done) {
        recipe_.reset();
        done();
    });
}

std::string shared_value::finish() noexcept {
    stop_.request_stop();
    thread_.stop();
    std::string trouble;
    core_->run([&](core::task done) {
        recipe_->close([&trouble, done = std::move(done)](std::string lost) mutable {
            trouble = std::move(lost);
            done();
        });
    });
    return trouble.empty() ? trouble : complaint(key_, core_->store().location(), trouble);
}

void shared_value::begin_fetch(recipes::fetch_request request,
                               core::unique_function<void(recipes::fetched)> done) {
    thread_.begin([this, request = std::move(request), done = std::move(done)]() mutable {
        recipes::fetched brought;
        // What was thrown unawares may come from before the request or from after it.
        brought.how = recipes::fetched::ending::unknown;
        try {
            brought = fetch_(std::move(request), stop_.get_token());
        } catch (const std::exception& fault) {
            brought.trouble = fault.what();
        } catch (...) {
            brought.trouble = "the fetch threw something that is no std::exception";
        }
        if (brought.trouble.size() > longest_trouble) {
            brought.trouble.resize(longest_trouble);
        }
        core_->post([done = std::move(done), brought = std::move(brought)]() mutable {
            done(std::move(brought));
        });
    });
}

/// Requires: the lock is held.
bool shared_value::is_good_here(const cached_wish& wish) const {
    if (!last_ || last_->fence <= std::max(wish.seen, rejected_)) {
        return false;
    }
    const auto now = boot_time_now();
    return now < last_->good_until &&
           std::chrono::floor<core::microseconds>(last_->valid_until - now) >= wish.min_life;
}

bool shared_value::read_here(const cached_wish& wish, std::string& value) {
    const std::lock_guard lock(mutex_);
    if (!is_good_here(wish)) {
        return false;
    }
    value = last_->value;
    return true;
}

cached_outcome shared_value::get(cached_wish wish, std::stop_token stop) {
    cached_outcome outcome;
    {
        const std::lock_guard lock(mutex_);
        if (is_good_here(wish)) {
            return *last_;
        }
        wish.seen = std::max(wish.seen, rejected_);
    }
    const auto state = std::make_shared<get_state>();
    const std::stop_callback on_stop(std::move(stop), [this, state] {
        core_->post([this, state] {
            state->cancelled = true;
            if (state->call) {
                recipe_->cancel(state->call);
            }
        });
    });
    core_->run([&](core::task done) {
        if (core_->closed() || state->cancelled) {
            outcome.error = errc::cancelled;
            if (core_->closed()) {
                auto refusal = core_->refusal();
                outcome.error = refusal.error;
                outcome.detail = std::move(refusal.detail);
            }
            done();
            return;
        }
        state->call = recipe_->get(
            wish, [&outcome, state, done = std::move(done)](cached_outcome told) mutable {
                state->call.reset();
                outcome = std::move(told);
                done();
            });
    });
    if (outcome.verdict == cached_verdict::value) {
        const std::lock_guard lock(mutex_);
        // The store was emptied, and counts from below what was refused.
        const bool counts_anew = outcome.fence <= wish.seen;
        if (counts_anew && rejected_ <= wish.seen) {
            rejected_ = 0;
        }
        if (!last_ || last_->fence <= outcome.fence || counts_anew) {
            last_ = outcome;
        }
    }
    return outcome;
}

void shared_value::reject(std::string_view value) {
    const std::lock_guard lock(mutex_);
    if (last_ && last_->value == value) {
        rejected_ = std::max(rejected_, last_->fence);
    }
}

cached_outcome shared_value::forget(std::chrono::nanoseconds wait, std::string& message) {
    cached_outcome outcome;
    core_->run([&](core::task done) {
        if (core_->closed()) {
            auto refusal = core_->refusal();
            outcome.error = refusal.error;
            outcome.detail = std::move(refusal.detail);
            done();
            return;
        }
        recipe_->forget(wait, [&outcome, done = std::move(done)](cached_outcome told) mutable {
            outcome = std::move(told);
            done();
        });
    });
    if (outcome.verdict == cached_verdict::value) {
        const std::lock_guard lock(mutex_);
        last_.reset();
        return outcome;
    }
    auto what = outcome.detail.empty() ? outcome.error.message() : outcome.detail;
    if (outcome.verdict == cached_verdict::busy) {
        outcome.error = errc::timed_out;
        what = "the wait is over, and nothing was forgotten" + who_fetches(outcome);
    }
    message = complaint(key_, core_->store().location(), what);
    return outcome;
}

std::error_code shared_value::error_of(const cached_outcome& outcome, std::string& message) const {
    std::error_code error = outcome.error;
    std::string what;
    const auto next = [&] {
        return outcome.retry_after == recipes::cached_record::unlimited
                   ? std::string{"; it will not be fetched again until somebody has seen to it"}
                   : "; it will not be fetched again for " +
                         core::show_duration(
                             std::chrono::ceil<std::chrono::milliseconds>(outcome.retry_after));
    };
    switch (outcome.verdict) {
        case cached_verdict::value:
            return {};
        case cached_verdict::failing:
            error = errc::value_unavailable;
            what = "there is no valid value, and the last fetch failed: " + outcome.detail + next();
            break;
        case cached_verdict::refused:
            error = errc::value_refused;
            what = "there is no valid value, and none to be had: " + outcome.detail + next();
            break;
        case cached_verdict::busy: {
            error = errc::timed_out;
            what = "the wait is over, and there is no valid value yet" + who_fetches(outcome);
            break;
        }
        case cached_verdict::trouble:
            what = outcome.detail.empty() ? outcome.error.message() : outcome.detail;
            break;
    }
    message = complaint(key_, core_->store().location(), what);
    return error;
}

}  // namespace dibs::detail
