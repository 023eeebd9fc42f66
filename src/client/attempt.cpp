// SPDX-License-Identifier: Apache-2.0
#include "client/attempt.hpp"

#include "client/checked_options.hpp"
#include "client/client_core.hpp"
#include "client/complaint.hpp"
#include "client/operation_state.hpp"
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
                                const acquire_options& options) {
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
            terms_of(options),
            [&outcome, done = std::move(done)](recipes::mutex_outcome ended) mutable {
                outcome = std::move(ended);
                done();
            });
    });
    return outcome;
}

recipes::mutex_outcome acquired_or_stopped(const std::shared_ptr<client_core>& core,
                                           std::string_view key,
                                           const acquire_options& options,
                                           std::stop_token stop) {
    const auto state = std::make_shared<operation::state>();
    recipes::mutex_outcome outcome;
    const std::stop_callback on_stop(std::move(stop), [&core, state] { state->cancel(core); });
    core->run([&](core::task done) {
        state->start(core,
                     std::string(key),
                     terms_of(options),
                     [&outcome, done = std::move(done)](recipes::mutex_outcome ended) mutable {
                         outcome = std::move(ended);
                         done();
                     });
    });
    return outcome;
}

/// Runs on the executor while the caller waits; may be stopped from another thread.
struct joint_call {
    std::shared_ptr<recipes::several_keys> call;
    bool stopped = false;
};

recipes::several_outcome all_acquired(const std::shared_ptr<client_core>& core,
                                      std::vector<std::string> keys,
                                      const acquire_options& options,
                                      std::stop_token stop) {
    recipes::several_outcome outcome;
    const auto shared_call = std::make_shared<joint_call>();
    const std::stop_callback on_stop(std::move(stop), [&core, shared_call] {
        core->post([shared_call] {
            shared_call->stopped = true;
            if (shared_call->call) {
                shared_call->call->cancel();
            }
        });
    });
    core->run([&](core::task done) {
        if (core->closed() || shared_call->stopped) {
            auto refusal = core->closed() ? core->refusal() : core::refused(errc::cancelled, "");
            outcome.key = keys.front();
            outcome.last.error = refusal.error;
            outcome.last.detail = std::move(refusal.detail);
            done();
            return;
        }
        shared_call->call =
            recipes::several_keys::start(core->env(),
                                         core->mutex(),
                                         std::move(keys),
                                         terms_of(options),
                                         [&outcome, shared_call, done = std::move(done)](
                                             recipes::several_outcome&& ended) mutable {
                                             shared_call->call.reset();
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

}  // namespace

attempt acquire_with_reason(client& through,
                            std::string_view key,
                            acquire_options options,
                            std::stop_token stop) noexcept {
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
    auto outcome = stop.stop_possible() ? acquired_or_stopped(core, key, options, std::move(stop))
                                        : acquired(core, key, options);
    if (outcome.error) {
        fail(outcome.error, outcome.detail.empty() ? outcome.error.message() : outcome.detail);
    } else if (outcome.lease) {
        told.granted = lease_access::make(core, std::move(outcome.lease));
    }
    describe(told, std::move(outcome));
    return told;
}

joint_attempt acquire_all_with_reason(client& through,
                                      std::vector<std::string> keys,
                                      acquire_options options,
                                      std::stop_token stop) noexcept {
    const auto core = lease_access::core(through);
    joint_attempt told;
    const auto fail = [&](std::error_code code, std::string_view what) {
        told.why.error = code;
        told.why.message = complaint(told.key, core ? core->store().location() : "none", what);
    };
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    if (!keys.empty()) {
        told.key = keys.front();
    }
    if (!core) {
        fail(errc::closed, "the client is closed");
        return told;
    }
    if (keys.empty()) {
        fail(errc::invalid_argument, "no key was named");
        return told;
    }
    for (const auto& key : keys) {
        if (auto fault = core::fault_of_key(key); !fault.empty()) {
            told.key = key;
            fail(errc::invalid_key, fault);
            return told;
        }
    }
    if (auto fault = fault_of_options(options, core->store().caps()); !fault.empty()) {
        fail(errc::invalid_argument, fault);
        return told;
    }
    auto outcome = all_acquired(core, std::move(keys), options, std::move(stop));
    told.key = std::move(outcome.key);
    auto& last = outcome.last;
    if (last.error) {
        fail(last.error, last.detail.empty() ? last.error.message() : last.detail);
    } else if (!outcome.leases.empty()) {
        told.granted = lease_access::make(core, std::move(outcome.leases));
    }
    describe(told.why, std::move(last));
    return told;
}

namespace {

/// One key after the other.
struct several_looks : std::enable_shared_from_this<several_looks> {
    std::shared_ptr<client_core> core;
    std::vector<std::string> keys;
    std::function<void(std::vector<record>)> told;
    std::vector<record> found;

    void go_on() {
        while (found.size() < keys.size() && keys[found.size()].empty()) {
            found.emplace_back();
        }
        if (core->closed()) {
            return;
        }
        if (found.size() == keys.size()) {
            told(std::move(found));
            return;
        }
        core->store().list(keys[found.size()], {}, 1, [self = shared_from_this()](core::page page) {
            if (page.error) {
                self->told({});
                return;
            }
            const auto& key = self->keys[self->found.size()];
            const bool there = !page.records.empty() && page.records.front().key == key;
            self->found.push_back(there ? shown(std::move(page.records.front())) : record{});
            self->go_on();
        });
    }
};

}  // namespace

void look_at_keys(client& of,
                  std::vector<std::string> keys,
                  std::function<void(std::vector<record>)> told) noexcept {
    const auto& core = lease_access::core(of);
    if (!core) {
        return;
    }
    const auto looks = std::make_shared<several_looks>();
    looks->core = core;
    looks->keys = std::move(keys);
    looks->told = std::move(told);
    core->post([looks] { looks->go_on(); });
}

int liveness_descriptor(client& of) noexcept {
    const auto& core = lease_access::core(of);
    return core ? core->store().liveness_descriptor() : -1;
}

void on_deadline(lease& of, std::function<void(std::int64_t)> told) noexcept {
    const auto handle = lease_access::handle(of);
    if (!handle) {
        return;
    }
    handle->core->run([&](core::task done) {
        auto& state = *handle->state;
        told(state.deadline().time_since_epoch().count());
        state.on_deadline = [told = std::move(told)](core::instant deadline) {
            told(deadline.time_since_epoch().count());
        };
        done();
    });
}

}  // namespace dibs::detail
