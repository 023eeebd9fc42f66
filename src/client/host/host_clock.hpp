// SPDX-License-Identifier: Apache-2.0
#pragma once
// The clocks of this host: for stores that have no server, and for people.

#include "core/time.hpp"

#include <cstdint>

namespace dibs::detail {

[[nodiscard]] core::store_now host_clock_now() noexcept;

/// Milliseconds since 1970, to be written down for people.
[[nodiscard]] std::int64_t calendar_ms() noexcept;

}  // namespace dibs::detail
