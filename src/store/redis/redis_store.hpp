// SPDX-License-Identifier: Apache-2.0
#pragma once
// The store on one Redis or Valkey server, shared by all hosts that reach it. It excludes whoever
// uses the same server, database and prefix, also programs that lock by SET key token NX PX. What
// it guarantees and what its failures look like: docs/stores/redis.md.

#include "core/environment.hpp"
#include "core/verbs.hpp"
#include "store/redis/address.hpp"
#include "store/store.hpp"

#include <memory>
#include <string>
#include <system_error>

namespace dibs::store {

struct redis_options {
    redis::address where;
    /// Told to others who find a key held by this process.
    core::party who;
};

/// `longest_ttl` as in the address.
[[nodiscard]] capabilities redis_capabilities(core::microseconds longest_ttl) noexcept;

/// Opens the store, or says why not: null, `error` set and `detail` naming server and cause. Blocks
/// until the server has greeted, at most about two seconds per address. Errors: store_unreachable,
/// store_refused, permission_denied, unsupported, invalid_url. A store does not survive fork(): the
/// child opens its own.
[[nodiscard]] std::unique_ptr<store> open_redis_store(core::environment env,
                                                      redis_options options,
                                                      std::error_code& error,
                                                      std::string& detail);

}  // namespace dibs::store
