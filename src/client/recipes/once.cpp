// SPDX-License-Identifier: Apache-2.0
#include "client/client_core.hpp"
#include "client/complaint.hpp"
#include "client/recipes/slot_plan.hpp"
#include "client/recipes/slot_run.hpp"
#include "recipes/once/slot_record.hpp"

#include <dibs/client.hpp>
#include <dibs/once.hpp>

#include <algorithm>
#include <utility>

namespace dibs {

namespace detail {

/// What a public schedule stands for.
struct planned_times {
    std::string text;
    std::optional<recipes::schedule> plan;  ///< empty: the slot is `name`
    std::string name;
    bool of_expression = false;

    static dibs::schedule make(planned_times made) {
        return dibs::schedule(std::make_shared<const planned_times>(std::move(made)));
    }
    static const planned_times& of(const dibs::schedule& shown) { return *shown.plan_; }
};

}  // namespace detail

namespace {

using detail::planned_times;
using detail::slot_verdict;
using std::chrono::milliseconds;

[[noreturn]] void refuse(const std::string& what) {
    throw error(errc::invalid_argument, what);
}

schedule planned(std::string_view what,
                 std::string_view zone,
                 bool of_expression,
                 const decltype(&recipes::schedule::make)& make) {
    std::string fault;
    auto plan = make(what, zone, fault);
    if (!plan) {
        refuse("the schedule `" + std::string(what) + "` in `" + std::string(zone) + "` " + fault);
    }
    return planned_times::make(
        {std::string(what) + " " + std::string(zone), std::move(plan), {}, of_expression});
}

/// Requires: fault_of_terms found nothing.
detail::slot_plan plan_of(const recipes::schedule& when, const once_options& options) {
    const auto early = options.early < milliseconds::zero() ? when.usual_early()
                                                            : core::microseconds(options.early);
    detail::slot_plan made{when, when.at(detail::wall_now(), early), options.at_most_once, {}};
    made.due.most = options.missed_max;
    made.due.late = options.late > milliseconds::zero()
                        ? core::microseconds(std::min(options.late, detail::as_good_as_forever))
                        : detail::usual_late(when);
    switch (options.missed) {
        case missed::none:
            made.due.policy = recipes::missed_slots::none;
            break;
        case missed::all:
            made.due.policy = recipes::missed_slots::all;
            break;
        case missed::last:
            break;
    }
    return made;
}

milliseconds slot_length_of(const planned_times& when, const once_options& options) {
    if (!when.plan) {
        return milliseconds::zero();
    }
    const auto early = options.early < milliseconds::zero() ? when.plan->usual_early()
                                                            : core::microseconds(options.early);
    return when.plan->longest() + std::chrono::ceil<milliseconds>(early);
}

/// Empty: nothing is wrong. What concerns the lease is looked at where it is asked for.
std::string fault_of_terms(const planned_times& when, const once_options& options) {
    if (options.at_most_once && options.retries > 0) {
        return "at_most_once and retries contradict each other";
    }
    if (options.retries > 1000) {
        return "retries must be at most 1000";
    }
    if (options.backoff < milliseconds::zero() || options.wait < milliseconds::zero() ||
        options.late < milliseconds::zero()) {
        return "backoff, wait and late must not be negative";
    }
    if (options.again && options.missed != missed::last) {
        return "again goes with one slot: missed must be missed::last";
    }
    if (options.missed_max == 0) {
        return "missed_max must be at least 1";
    }
    if (!when.plan && (options.missed != missed::last || options.early > milliseconds::zero())) {
        return "missed and early go with every() and cron() alone";
    }
    if (when.plan && options.early > std::chrono::floor<milliseconds>(when.plan->most_early())) {
        return "early must be at most half of the shortest slot";
    }
    if (options.missed == missed::none && !when.of_expression &&
        options.late == milliseconds::zero()) {
        return "missed::none needs late with every(): a period does not tell when it is called";
    }
    if (options.keep != milliseconds::zero() &&
        (options.keep < detail::shortest_keep || options.keep < slot_length_of(when, options))) {
        return "keep must be at least an hour, and longer than a slot";
    }
    return {};
}

detail::slot_terms terms_of(std::string_view job,
                            const planned_times& when,
                            const once_options& options) {
    detail::slot_terms terms;
    terms.job = job;
    terms.slot = when.name;
    terms.acquire.ttl = options.ttl;
    terms.acquire.wait = options.wait;
    terms.retries = options.retries;
    terms.backoff = std::min(options.backoff, detail::as_good_as_forever);
    terms.at_most_once = options.at_most_once;
    terms.again = options.again;
    terms.in_turn = options.overlap == overlap::forbid ||
                    (options.overlap == overlap::usual && options.missed == missed::all);
    terms.keep =
        options.keep != milliseconds::zero()
            ? std::min(options.keep, detail::as_good_as_forever)
            : detail::usual_keep(
                  slot_length_of(when, options), options.retries, options.backoff, options.ttl);
    return terms;
}

once_outcome shown(slot_verdict verdict) noexcept {
    switch (verdict) {
        case slot_verdict::done:
            return once_outcome::done;
        case slot_verdict::failed:
            return once_outcome::failed;
        case slot_verdict::waiting:
            return once_outcome::retry_later;
        case slot_verdict::overlaps:
            return once_outcome::overlaps;
        case slot_verdict::blocked:
            return once_outcome::on_hold;
        case slot_verdict::forgotten:
            return once_outcome::forgotten;
        case slot_verdict::running:
        case slot_verdict::granted:
        case slot_verdict::trouble:
            break;
    }
    return once_outcome::running;
}

/// Requested when any of several is.
class any_stop {
  public:
    any_stop(std::stop_token one, std::stop_token other, std::stop_token third)
        : one_(std::move(one), stopper{source_}),
          other_(std::move(other), stopper{source_}),
          third_(std::move(third), stopper{source_}) {}

    [[nodiscard]] std::stop_token token() const noexcept { return source_.get_token(); }

  private:
    struct stopper {
        std::stop_source& source;
        void operator()() const noexcept { source.request_stop(); }
    };
    std::stop_source source_;
    std::stop_callback<stopper> one_;
    std::stop_callback<stopper> other_;
    std::stop_callback<stopper> third_;
};

/// Runs a slot that was granted, and leaves its outcome.
void run_granted(client& through,
                 detail::slot_claim& claim,
                 const detail::slot_terms& terms,
                 const once_function& work,
                 const std::stop_token& stop,
                 slot_result& result) {
    auto& held = *claim.granted;
    once_context context;
    context.job = terms.job;
    context.slot = terms.slot;
    context.attempt = claim.mine.attempt;
    context.idempotency_key = recipes::idempotency_key_of(terms.job, terms.slot);
    context.fence = held.last_fence();
    result.here = true;
    result.attempt = claim.mine.attempt;
    const any_stop any(held.lost(), claim.turn ? claim.turn->lost() : std::stop_token{}, stop);
    context.stop = any.token();
    auto how = detail::run_end::succeeded;
    try {
        work(context);
    } catch (...) {
        result.failure = std::current_exception();
        how = stop.stop_requested() ? detail::run_end::interrupted : detail::run_end::failed;
    }
    std::error_code trouble;
    const auto left = detail::finish_slot(
        through, held, terms, claim.mine, how, how == detail::run_end::succeeded ? 0 : 1, trouble);
    if (claim.turn) {
        std::error_code ignored;
        (void)claim.turn->release(ignored);
    }
    if (left != release_outcome::released) {
        result.outcome = once_outcome::lost;
    } else if (how == detail::run_end::succeeded) {
        result.outcome = once_outcome::ran;
    } else if (how == detail::run_end::interrupted) {
        result.outcome = once_outcome::interrupted;
    } else {
        const bool again = !terms.at_most_once && claim.mine.failures < terms.retries;
        result.outcome = again ? once_outcome::retry_later : once_outcome::failed;
        result.retry_after = again ? detail::back_off_after(terms, claim.mine.failures + 1)
                                   : std::chrono::microseconds::zero();
    }
}

/// After one of these the next slot would fare no better, or somebody else is at it in our place.
bool ends_the_row(once_outcome outcome) noexcept {
    return outcome == once_outcome::running || outcome == once_outcome::overlaps ||
           outcome == once_outcome::on_hold || outcome == once_outcome::lost ||
           outcome == once_outcome::interrupted;
}

/// False: `error` and `message` say why.
bool run_one(client& through,
             const detail::slot_terms& terms,
             const once_function& work,
             const std::stop_token& stop,
             once_result& all,
             std::error_code& error,
             std::string& message) {
    auto claim = detail::claim_slot(through, terms, stop);
    if (claim.error) {
        error = claim.error;
        message = std::move(claim.message);
        return false;
    }
    auto& result = all.slots.emplace_back();
    result.slot = terms.slot;
    if (claim.granted) {
        run_granted(through, claim, terms, work, stop, result);
        return true;
    }
    result.outcome = shown(claim.verdict);
    result.attempt = claim.found ? claim.found->attempt : 0;
    result.retry_after = claim.retry_after;
    result.reason = std::move(claim.blocked_reason);
    if (!claim.holders.empty()) {
        result.holder = std::move(claim.holders.front());
    }
    return true;
}

once_result run_all(client& through,
                    std::string_view job,
                    const schedule& when,
                    const once_function& work,
                    const once_options& options,
                    const std::stop_token& stop,
                    std::error_code& error,
                    std::string& message) {
    once_result all;
    error.clear();
    const auto& times = planned_times::of(when);
    const auto core = detail::lease_access::core(through);
    const auto where = core ? core->store().location() : std::string("none");
    if (const auto fault = fault_of_terms(times, options); !fault.empty() || !work) {
        error = errc::invalid_argument;
        message = detail::complaint(job, where, work ? fault : "there is nothing to run");
        return all;
    }
    auto terms = terms_of(job, times, options);
    if (!times.plan) {
        run_one(through, terms, work, stop, all, error, message);
        return all;
    }
    const auto plan = plan_of(*times.plan, options);
    const auto due = detail::due_slots(through, terms.job, plan, error, message);
    all.left_out = due.left_out;
    for (const auto& one : due.slots) {
        terms.slot = one.name;
        terms.begin_ms = std::chrono::floor<milliseconds>(one.begin.time_since_epoch()).count();
        if (!run_one(through, terms, work, stop, all, error, message) ||
            ends_the_row(all.outcome()) || stop.stop_requested()) {
            break;
        }
        if (all.slots.back().here) {
            detail::forget_slots(through, terms, [&](std::int64_t at_ms) {
                return times.plan->at(core::wall_instant{milliseconds{at_ms}}, {}).name;
            });
        }
    }
    return all;
}

}  // namespace

schedule::schedule(std::shared_ptr<const detail::planned_times> plan) noexcept
    : plan_(std::move(plan)) {}

const std::string& schedule::text() const noexcept {
    return plan_->text;
}

schedule every(std::string_view period, std::string_view zone) {
    return planned(period, zone, false, &recipes::schedule::make);
}

schedule every(std::chrono::seconds period, std::string_view zone) {
    const bool whole_hours = period % std::chrono::hours{1} == std::chrono::seconds::zero();
    const auto count = whole_hours ? period / std::chrono::hours{1} : period.count();
    return every(std::to_string(count) + (whole_hours ? "h" : "s"), zone);
}

schedule cron(std::string_view expression, std::string_view zone) {
    return planned(expression, zone, true, &recipes::schedule::make_cron);
}

schedule slot(std::string_view name) {
    if (const auto fault = recipes::fault_of_slot(name); !fault.empty()) {
        refuse("the slot " + fault);
    }
    return detail::planned_times::make({std::string(name), {}, std::string(name), false});
}

once_result client::once(std::string_view job,
                         const schedule& when,
                         const once_function& work,
                         once_options options,
                         std::stop_token stop,
                         std::error_code& error) {
    std::string message;
    return run_all(*this, job, when, work, options, stop, error, message);
}

once_result client::once(std::string_view job,
                         const schedule& when,
                         const once_function& work,
                         once_options options,
                         std::stop_token stop) {
    std::error_code error;
    std::string message;
    auto result = run_all(*this, job, when, work, options, stop, error, message);
    if (error) {
        throw dibs::error(error, message);
    }
    return result;
}

}  // namespace dibs
