// SPDX-License-Identifier: Apache-2.0
#pragma once
// The store in a database of PostgreSQL, shared by all hosts that reach it. It excludes whoever uses
// the same database, schema and prefix. What it guarantees and what its failures look like:
// docs/stores/postgres.md.

#include "core/environment.hpp"
#include "core/verbs.hpp"
#include "store/postgres/address.hpp"
#include "store/store.hpp"

#include <memory>
#include <string>
#include <system_error>

namespace dibs::store {

struct postgres_options {
    postgres::address where;
    /// Told to others who find a key held by this process.
    core::party who;
};

/// Of lease rows. `longest_ttl` as in the address; `listens`: the way to the server passes wake-ups on.
[[nodiscard]] capabilities postgres_capabilities(core::microseconds longest_ttl,
                                                 bool listens) noexcept;

/// Opens the store, or says why not: null, `error` set and `detail` naming store and cause. Makes the
/// tables where there are none. Blocks until the server has greeted, a few seconds at most. Errors:
/// store_unreachable, store_refused, permission_denied, unsupported, newer_format, store_damaged. A
/// store does not survive fork(): the child opens its own.
[[nodiscard]] std::unique_ptr<store> open_postgres_store(core::environment env,
                                                         postgres_options options,
                                                         std::error_code& error,
                                                         std::string& detail);

}  // namespace dibs::store
