// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sees to it that the tables are there, and that they are of a format that we know.

#include "core/environment.hpp"
#include "store/postgres/address.hpp"
#include "store/postgres/link.hpp"

#include <string>

namespace dibs::store::postgres {

/// Over a connection that is ready. Makes the schema and the tables where they are not, under an
/// advisory lock, unless the address says otherwise. Blocks for a few seconds at most. Errors:
/// store_unreachable when there are none, newer_format, permission_denied naming the right, and what
/// the server says.
[[nodiscard]] trouble ensure_schema(link& over, core::environment env, const address& where);

/// That there are none, for people, and what makes them.
[[nodiscard]] std::string no_tables_yet(const address& where);

}  // namespace dibs::store::postgres
