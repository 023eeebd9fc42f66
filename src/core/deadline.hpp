// SPDX-License-Identifier: Apache-2.0
#pragma once
// When a holder must stop, by its own clock.
//
// Source: Gray and Cheriton, "Leases" (SOSP 1989), for the rule that the holder's term ends before
// the grantor's; the margin for clock drift is the one of the Redlock description (1 % and 2 ms).

#include "core/time.hpp"

namespace dibs::core {

/// How much earlier than `sent + ttl` a lease of this ttl ends for its holder.
[[nodiscard]] constexpr nanoseconds deadline_margin(nanoseconds ttl) noexcept {
    return ttl / 100 + milliseconds{2};
}

/// The local deadline of a lease whose request was about to leave at `sent`. The store starts its
/// ttl no earlier than that, so this instant is early whatever the network did.
[[nodiscard]] constexpr instant local_deadline(instant sent, nanoseconds ttl) noexcept {
    return sent + ttl - deadline_margin(ttl);
}

}  // namespace dibs::core
