// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether a pooler lends its clients a session for as long as they stay, or for one transaction at a
// time. It does not say so; it shows when two clients ask in turns.

#include "core/environment.hpp"
#include "store/postgres/address.hpp"
#include "store/postgres/link.hpp"

namespace dibs::store::postgres {

/// Over a connection that is ready and found that it is pooled. No trouble: the session stays ours.
/// Blocks for a few seconds at most, and leaves nothing behind in sessions that are lent.
[[nodiscard]] trouble check_pooler(link& over, core::environment env, const address& where);

}  // namespace dibs::store::postgres
