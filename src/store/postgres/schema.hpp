// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sees to it that the tables are there, and that they are of a format that we know.

#include "core/environment.hpp"
#include "store/postgres/address.hpp"
#include "store/postgres/link.hpp"

namespace dibs::store::postgres {

/// Over a connection that is ready. Makes the schema and the tables where they are not, under an
/// advisory lock. Blocks for a few seconds at most. Errors: newer_format, permission_denied naming
/// the right, and what the server says.
[[nodiscard]] trouble ensure_schema(link& over, core::environment env, const address& where);

}  // namespace dibs::store::postgres
