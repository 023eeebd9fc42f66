// SPDX-License-Identifier: Apache-2.0
#include "client/async/operation_state.hpp"
#include "client/attempt.hpp"
#include "client/checked_options.hpp"
#include "client/client_core.hpp"
#include "client/leases/adoption.hpp"
#include "core/key.hpp"
#include "core/recycling_allocator.hpp"

#include <dibs/async.hpp>

#include <utility>

namespace dibs {

void operation::state::start(const std::shared_ptr<detail::client_core>& core,
                             std::string key,
                             recipes::mutex_terms terms,
                             recipes::mutex::completion done) {
    recipes::mutex_outcome at_once;
    if (core->closed()) {
        auto refusal = core->refusal();
        at_once.error = refusal.error;
        at_once.detail = std::move(refusal.detail);
    } else if (cancelled) {
        at_once.error = errc::cancelled;
    }
    if (at_once.error) {
        done(std::move(at_once));
        return;
    }
    call = core->mutex().acquire(std::move(key),
                                 terms,
                                 [self = shared_from_this(),
                                  done = std::move(done)](recipes::mutex_outcome&& ended) mutable {
                                     self->call.reset();
                                     done(std::move(ended));
                                 });
}

void operation::state::start(const std::shared_ptr<detail::client_core>& core,
                             std::vector<std::string> keys,
                             recipes::mutex_terms terms,
                             recipes::several_keys::completion done) {
    recipes::several_outcome at_once;
    if (core->closed()) {
        auto refusal = core->refusal();
        at_once.last.error = refusal.error;
        at_once.last.detail = std::move(refusal.detail);
    } else if (cancelled) {
        at_once.last.error = errc::cancelled;
    }
    if (at_once.last.error) {
        at_once.key = std::move(keys.front());
        done(std::move(at_once));
        return;
    }
    call_of_all = recipes::several_keys::start(core->env(),
                                               core->mutex(),
                                               std::move(keys),
                                               std::move(terms),
                                               [self = shared_from_this(), done = std::move(done)](
                                                   recipes::several_outcome&& ended) mutable {
                                                   self->call_of_all.reset();
                                                   done(std::move(ended));
                                               });
}

void operation::state::cancel(const std::shared_ptr<detail::client_core>& core) noexcept {
    cancelled = true;
    core->post([self = shared_from_this(), core] {
        if (self->call && !core->closed()) {
            core->mutex().cancel(self->call);
        }
        if (self->call_of_all && !core->closed()) {
            self->call_of_all->cancel();
        }
        if (self->claim && !core->closed()) {
            const auto recipe = self->claims;  // the end of the call drops it
            recipe->cancel(self->claim);
        }
    });
}

operation::operation() : state_(std::make_shared<state>()) {}

void operation::cancel() const noexcept {
    state_->cancelled = true;
    if (const auto core = state_->through()) {
        state_->cancel(core);
    }
}

void operation::state::attach(const std::shared_ptr<detail::client_core>& core) {
    const std::lock_guard lock(mutex_);
    through_ = core;
}

std::shared_ptr<detail::client_core> operation::state::through() {
    const std::lock_guard lock(mutex_);
    return through_.lock();
}

namespace {

/// An acquire on its way to the executor, and until it is over.
struct asynchronous_acquire {
    std::shared_ptr<detail::client_core> core;
    std::shared_ptr<operation::state> state;  ///< null: it cannot be cancelled
    std::string key;
    recipes::mutex_terms terms;
    std::unique_ptr<acquire_handler> handler;
};

void tell(asynchronous_acquire& which, recipes::mutex_outcome&& ended) {
    std::optional<lease> granted;
    if (ended.lease) {
        granted = detail::lease_access::make(which.core, std::move(ended.lease));
    }
    which.handler.release()->complete_and_go(ended.error, std::move(granted));
}

void start(std::shared_ptr<asynchronous_acquire> which) {
    auto& request = *which;
    auto told = [which = std::move(which)](recipes::mutex_outcome&& ended) {
        tell(*which, std::move(ended));
    };
    if (request.state) {
        request.state->start(request.core, std::move(request.key), request.terms, std::move(told));
    } else if (request.core->closed()) {
        recipes::mutex_outcome closed;
        closed.error = request.core->refusal().error;
        told(std::move(closed));
    } else {
        request.core->mutex().acquire(
            std::move(request.key), std::move(request.terms), std::move(told));
    }
}

void start_acquire(client& through,
                   std::string_view key,
                   const acquire_options& options,
                   std::unique_ptr<acquire_handler> handler,
                   std::shared_ptr<operation::state> state) {
    const auto& core = detail::lease_access::core(through);
    std::error_code fault;
    if (!core) {
        fault = errc::closed;
    } else if (!core::fault_of_key(key).empty()) {
        fault = errc::invalid_key;
    } else if (!detail::fault_of_options(options, core->store().caps()).empty()) {
        fault = errc::invalid_argument;
    }
    if (fault) {
        handler.release()->complete_and_go(fault, std::nullopt);
        return;
    }
    if (state) {
        state->attach(core);
    }
    auto made = std::allocate_shared<asynchronous_acquire>(
        core::recycling_allocator<asynchronous_acquire>{});
    made->core = core;
    made->state = std::move(state);
    made->key = key;
    made->terms = detail::terms_of(options);
    made->handler = std::move(handler);
    auto& on = *core;
    on.post([made = std::move(made)]() mutable { start(std::move(made)); });
}

}  // namespace

void start_acquire(client& through,
                   std::string_view key,
                   acquire_options options,
                   std::unique_ptr<acquire_handler> handler) {
    start_acquire(through, key, options, std::move(handler), nullptr);
}

void start_acquire(client& through,
                   std::string_view key,
                   acquire_options options,
                   std::unique_ptr<acquire_handler> handler,
                   const operation& call) {
    start_acquire(
        through, key, options, std::move(handler), detail::operation_access::state_of(call));
}

void start_acquire_all(client& through,
                       std::vector<std::string> keys,
                       acquire_options options,
                       std::unique_ptr<acquire_all_handler> handler,
                       const operation& call) {
    const auto& core = detail::lease_access::core(through);
    auto told = detail::check_keys(core.get(), keys, options);
    if (told.why.error) {
        handler.release()->complete_and_go(told.why.error, std::nullopt);
        return;
    }
    const auto& state = detail::operation_access::state_of(call);
    state->attach(core);
    core->post([core,
                state,
                keys = std::move(keys),
                terms = detail::terms_of(options),
                handler = std::move(handler)]() mutable {
        state->start(
            core,
            std::move(keys),
            std::move(terms),
            [core, handler = std::move(handler)](recipes::several_outcome&& ended) mutable {
                std::optional<lease_set> granted;
                if (!ended.leases.empty()) {
                    granted = detail::lease_access::make(core, std::move(ended.leases));
                }
                handler.release()->complete_and_go(ended.last.error, std::move(granted));
            });
    });
}

void start_release(lease&& held, std::unique_ptr<release_handler> handler) {
    auto handle = detail::lease_access::take(held);
    if (!handle) {
        handler.release()->complete_and_go({}, release_outcome::not_held);
        return;
    }
    auto& core = *handle->core;
    core.post([handle = std::move(handle), handler = std::move(handler)]() mutable {
        auto& behind = *handle->core;
        if (behind.closed()) {
            handler.release()->complete_and_go({}, release_outcome::not_held);
            return;
        }
        behind.mutex().release(
            handle->state,
            [handle, handler = std::move(handler)](const recipes::release_reply& told) mutable {
                handler.release()->complete_and_go(
                    told.error,
                    told.released ? release_outcome::released : release_outcome::not_held);
            });
    });
}

void start_hand_over(lease& held, std::unique_ptr<hand_over_handler> handler) {
    auto handle = detail::lease_access::handle(held);
    if (!handle) {
        handler.release()->complete_and_go(errc::not_held, {});
        return;
    }
    auto& core = *handle->core;
    core.post([handle = std::move(handle), handler = std::move(handler)]() mutable {
        detail::hand_over(std::move(handle),
                          [handler = std::move(handler)](detail::hand_over_outcome&& told) mutable {
                              handler.release()->complete_and_go(told.error, std::move(told.text));
                          });
    });
}

void start_adopt(client& through,
                 std::string_view handed_over,
                 acquire_options options,
                 std::unique_ptr<adopt_handler> handler) {
    const auto& core = detail::lease_access::core(through);
    std::error_code fault;
    std::optional<detail::adoption> asked;
    if (!core) {
        fault = errc::closed;
    } else {
        std::string message;
        asked = detail::checked_adoption(*core, handed_over, options, fault, message);
    }
    if (!asked) {
        handler.release()->complete_and_go(fault, {});
        return;
    }
    core->post([core, asked = std::move(*asked), handler = std::move(handler)]() mutable {
        detail::adopt(
            core,
            asked,
            [core, handler = std::move(handler)](detail::adoption_outcome&& told) mutable {
                lease taken;
                if (told.lease) {
                    taken = detail::lease_access::make(core, std::move(told.lease));
                }
                handler.release()->complete_and_go(told.error, std::move(taken));
            });
    });
}

}  // namespace dibs
