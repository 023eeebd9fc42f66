// SPDX-License-Identifier: Apache-2.0
// Those who want the value: served at once, made to wait, or told why there is none. A flight begins when somebody
// needs one (cached_flight.cpp); what it brings is kept by cached_keeping.cpp.
#include "recipes/cached/cached_parts.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace dibs::recipes {

using core::milliseconds;

namespace {

/// What ends a call at its deadline is what the store says then; this much later it is ended without that.
constexpr nanoseconds grace_at_the_end = milliseconds{100};
/// After a flight that the store did not let land. A flight tries on by itself where that may help soon.
constexpr nanoseconds rest_after_trouble = milliseconds{500};
/// Who has a valid value waits no longer than this to hear whether there is a newer one.
constexpr nanoseconds patience_with_a_value = milliseconds{500};

}  // namespace

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

bool cached_value::rests() const {
    return env_.time.now() < flies_again_ &&
           std::all_of(
               calls_.begin(), calls_.end(), [](const auto& one) { return one->wish.patient; });
}

/// A store that is silent has its time with each call, and one in any trouble that may end has it with who is patient.
void cached_value::fail(mutex_trouble told) {
    const auto now = env_.time.now();
    const bool silent = told.error == errc::timed_out || told.error == condition::outcome_unknown;
    const bool may_end = silent || told.error == condition::retryable;
    const auto all = calls_;
    for (const auto& one : all) {
        const bool waits =
            one->wish.patient ? may_end : silent && now - one->since < terms_.acquire.timeout;
        if (!waits || now >= one->until) {
            tell_trouble(one, told);
        }
    }
    trouble_ = std::move(told);
    flies_again_ = now + rest_after_trouble;
    arm();
}

void cached_value::tell_trouble(const call_ptr& which, const mutex_trouble& what) {
    cached_outcome outcome;
    outcome.error = what.error;
    outcome.detail = what.detail;
    end(which, std::move(outcome));
}

void cached_value::fail_all(std::error_code error, const std::string& detail) {
    const auto all = calls_;
    for (const auto& one : all) {
        tell_trouble(one, {error, detail});
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
    if (!flight_ && !calls_.empty() && rests()) {
        due = std::min(due, flies_again_);
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
        } else if (over && one->wish.patient && trouble_.error) {
            tell_trouble(one, trouble_);
        } else if (over) {
            tell_busy(one);
        }
    }
    arm();
    fly();
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
