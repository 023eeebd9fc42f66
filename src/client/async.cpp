// SPDX-License-Identifier: Apache-2.0
#include "client/checked_options.hpp"
#include "client/client_core.hpp"
#include "client/operation_state.hpp"
#include "core/key.hpp"

#include <dibs/async.hpp>

#include <utility>

namespace dibs {

void operation::state::start(const std::shared_ptr<detail::client_core>& core,
                             std::string key,
                             recipes::mutex_terms terms,
                             recipes::mutex::completion done) {
    recipes::mutex_outcome at_once;
    if (core->closed()) {
        at_once.error = errc::closed;
    } else if (cancelled) {
        at_once.error = errc::cancelled;
    }
    if (at_once.error) {
        done(std::move(at_once));
        return;
    }
    call = core->mutex().acquire(
        std::move(key),
        terms,
        [self = shared_from_this(), done = std::move(done)](recipes::mutex_outcome ended) mutable {
            self->call.reset();
            done(std::move(ended));
        });
}

void operation::state::cancel(const std::shared_ptr<detail::client_core>& core) noexcept {
    cancelled = true;
    core->post([self = shared_from_this(), core] {
        if (self->call && !core->closed()) {
            core->mutex().cancel(self->call);
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

void start_acquire(client& through,
                   std::string_view key,
                   acquire_options options,
                   std::unique_ptr<acquire_handler> handler,
                   const operation& call) {
    const auto core = detail::lease_access::core(through);
    std::error_code fault;
    if (!core) {
        fault = errc::closed;
    } else if (!core::fault_of_key(key).empty()) {
        fault = errc::invalid_key;
    } else if (!detail::fault_of_options(options, core->store().caps()).empty()) {
        fault = errc::invalid_argument;
    }
    if (fault) {
        handler->complete(fault, std::nullopt);
        return;
    }
    const auto state = detail::operation_access::state_of(call);
    state->attach(core);
    core->post([core,
                state,
                name = std::string(key),
                terms = detail::terms_of(options),
                handler = std::move(handler)]() mutable {
        state->start(core,
                     std::move(name),
                     terms,
                     [core, handler = std::move(handler)](recipes::mutex_outcome ended) {
                         std::optional<lease> granted;
                         if (ended.lease) {
                             granted = detail::lease_access::make(core, std::move(ended.lease));
                         }
                         handler->complete(ended.error, std::move(granted));
                     });
    });
}

void start_release(lease&& held, std::unique_ptr<release_handler> handler) {
    auto handle = detail::lease_access::take(held);
    if (!handle) {
        handler->complete({}, release_outcome::not_held);
        return;
    }
    auto& core = *handle->core;
    core.post([handle = std::move(handle), handler = std::move(handler)]() mutable {
        auto& behind = *handle->core;
        if (behind.closed()) {
            handler->complete({}, release_outcome::not_held);
            return;
        }
        behind.mutex().release(
            handle->state,
            [handle, handler = std::move(handler)](const recipes::release_reply& told) {
                handler->complete(
                    told.error,
                    told.released ? release_outcome::released : release_outcome::not_held);
            });
    });
}

}  // namespace dibs
