// SPDX-License-Identifier: Apache-2.0
#pragma once
// A call under way that may be cancelled from any thread, also before it has begun.

#include "client/client_core.hpp"
#include "recipes/idempotent.hpp"
#include "recipes/mutex.hpp"
#include "recipes/several_keys.hpp"

#include <dibs/async.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace dibs {

struct operation::state : std::enable_shared_from_this<operation::state> {
    /// On the executor of `core`.
    void start(const std::shared_ptr<detail::client_core>& core,
               std::string key,
               recipes::mutex_terms terms,
               recipes::mutex::completion done);

    /// The same, of several keys.
    void start(const std::shared_ptr<detail::client_core>& core,
               std::vector<std::string> keys,
               recipes::mutex_terms terms,
               recipes::several_keys::completion done);

    /// The same, of idempotent work that is to be claimed.
    void start(const std::shared_ptr<detail::client_core>& core,
               recipes::idempotent_terms terms,
               recipes::idempotent::completion done);

    /// From any thread.
    void cancel(const std::shared_ptr<detail::client_core>& core) noexcept;

    /// Which client the call goes through. From any thread.
    void attach(const std::shared_ptr<detail::client_core>& core);
    [[nodiscard]] std::shared_ptr<detail::client_core> through();

    std::atomic<bool> cancelled{false};
    recipes::mutex::call_ptr call;                       ///< on the executor alone
    std::shared_ptr<recipes::several_keys> call_of_all;  ///< the same, of several keys
    std::shared_ptr<recipes::idempotent> claims;         ///< the same, while `claim` is under way
    recipes::idempotent::call_ptr claim;

  private:
    std::mutex mutex_;
    std::weak_ptr<detail::client_core> through_;
};

namespace detail {

struct operation_access {
    static const std::shared_ptr<operation::state>& state_of(const operation& call) noexcept {
        return call.state_;
    }
};

}  // namespace detail

}  // namespace dibs
