// SPDX-License-Identifier: Apache-2.0
#include "client/attempt.hpp"

#include "client/async/operation_state.hpp"
#include "client/checked_options.hpp"
#include "client/client_core.hpp"
#include "client/complaint.hpp"
#include "client/shown_records.hpp"
#include "core/key.hpp"
#include "recipes/several_keys.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace dibs::detail {

namespace {

recipes::mutex_outcome acquired(const std::shared_ptr<client_core>& core,
                                std::string_view key,
                                recipes::mutex_terms terms) {
    recipes::mutex_outcome outcome;
    core->run([&](core::task done) {
        if (core->closed()) {
            auto refusal = core->refusal();
            outcome.error = refusal.error;
            outcome.detail = std::move(refusal.detail);
            done();
            return;
        }
        core->mutex().acquire(
            std::string(key),
            std::move(terms),
            [&outcome, done = std::move(done)](recipes::mutex_outcome ended) mutable {
                outcome = std::move(ended);
                done();
            });
    });
    return outcome;
}

recipes::mutex_outcome acquired_or_stopped(const std::shared_ptr<client_core>& core,
                                           std::string_view key,
                                           recipes::mutex_terms terms,
                                           std::stop_token stop) {
    const auto state = std::make_shared<operation::state>();
    recipes::mutex_outcome outcome;
    const std::stop_callback on_stop(std::move(stop), [&core, state] { state->cancel(core); });
    core->run([&](core::task done) {
        state->start(core,
                     std::string(key),
                     std::move(terms),
                     [&outcome, done = std::move(done)](recipes::mutex_outcome ended) mutable {
                         outcome = std::move(ended);
                         done();
                     });
    });
    return outcome;
}

recipes::several_outcome all_acquired(const std::shared_ptr<client_core>& core,
                                      std::vector<std::string> keys,
                                      const acquire_options& options,
                                      std::stop_token stop) {
    const auto state = std::make_shared<operation::state>();
    recipes::several_outcome outcome;
    const std::stop_callback on_stop(std::move(stop), [&core, state] { state->cancel(core); });
    core->run([&](core::task done) {
        state->start(core,
                     std::move(keys),
                     terms_of(options),
                     [&outcome, done = std::move(done)](recipes::several_outcome&& ended) mutable {
                         outcome = std::move(ended);
                         done();
                     });
    });
    return outcome;
}

/// What stood in the way, as the public interface tells it.
void describe(attempt& told, recipes::mutex_outcome&& outcome) {
    told.holders = shown(std::move(outcome.holders));
    told.done = outcome.done;
    told.blocked = outcome.blocked;
    told.blocked_reason = std::move(outcome.blocked_reason);
    told.queue_first = outcome.queue_first;
    told.retry_after = outcome.retry_after;
}

/// A lease with a mark is not handed on; this one is of no other use, and is forgotten at once.
void forbid_handing_on(recipes::mutex_terms& terms) {
    terms.mark = core::result_to_keep{
        .value = "leads", .fresh = core::microseconds{0}, .keep = core::microseconds{1}};
}

attempt attempted(client& through,
                  std::string_view key,
                  const acquire_options& options,
                  std::stop_token stop,
                  bool leads) {
    const auto core = lease_access::core(through);
    attempt told;
    const auto fail = [&](std::error_code code, std::string_view what) {
        told.error = code;
        told.message = complaint(key, core ? core->store().location() : "none", what);
    };
    if (!core) {
        fail(errc::closed, "the client is closed");
        return told;
    }
    if (auto fault = core::fault_of_key(key); !fault.empty()) {
        fail(errc::invalid_key, fault);
        return told;
    }
    if (auto fault = fault_of_options(options, core->store().caps()); !fault.empty()) {
        fail(errc::invalid_argument, fault);
        return told;
    }
    auto terms = terms_of(options);
    if (leads) {
        forbid_handing_on(terms);
    }
    auto outcome = stop.stop_possible()
                       ? acquired_or_stopped(core, key, std::move(terms), std::move(stop))
                       : acquired(core, key, std::move(terms));
    if (outcome.error) {
        fail(outcome.error, outcome.detail.empty() ? outcome.error.message() : outcome.detail);
    } else if (outcome.lease) {
        told.granted = lease_access::make(core, std::move(outcome.lease));
    }
    describe(told, std::move(outcome));
    return told;
}

}  // namespace

attempt acquire_with_reason(client& through,
                            std::string_view key,
                            acquire_options options,
                            std::stop_token stop) noexcept {
    return attempted(through, key, options, std::move(stop), false);
}

attempt campaign_with_reason(client& through,
                             std::string_view key,
                             acquire_options options,
                             std::stop_token stop) noexcept {
    return attempted(through, key, options, std::move(stop), true);
}

joint_attempt check_keys(client_core* core,
                         std::vector<std::string>& keys,
                         const acquire_options& options) {
    joint_attempt told;
    const auto fail = [&](errc code, std::string_view what) {
        told.why.error = code;
        told.why.message =
            complaint(told.key, core != nullptr ? core->store().location() : "none", what);
    };
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    const auto faulty = std::find_if(
        keys.begin(), keys.end(), [](const auto& key) { return !core::fault_of_key(key).empty(); });
    if (!keys.empty()) {
        told.key = faulty != keys.end() ? *faulty : keys.front();
    }
    if (core == nullptr) {
        fail(errc::closed, "the client is closed");
    } else if (keys.empty()) {
        fail(errc::invalid_argument, "no key was named");
    } else if (faulty != keys.end()) {
        fail(errc::invalid_key, core::fault_of_key(*faulty));
    } else if (auto fault = fault_of_options(options, core->store().caps()); !fault.empty()) {
        fail(errc::invalid_argument, fault);
    }
    return told;
}

joint_attempt acquire_all_with_reason(client& through,
                                      std::vector<std::string> keys,
                                      acquire_options options,
                                      std::stop_token stop) noexcept {
    const auto core = lease_access::core(through);
    auto told = check_keys(core.get(), keys, options);
    if (told.why.error) {
        return told;
    }
    auto outcome = all_acquired(core, std::move(keys), options, std::move(stop));
    told.key = std::move(outcome.key);
    auto& last = outcome.last;
    if (last.error) {
        told.why.error = last.error;
        told.why.message = complaint(told.key,
                                     core->store().location(),
                                     last.detail.empty() ? last.error.message() : last.detail);
    } else if (!outcome.leases.empty()) {
        told.granted = lease_access::make(core, std::move(outcome.leases));
    }
    describe(told.why, std::move(last));
    return told;
}

}  // namespace dibs::detail
