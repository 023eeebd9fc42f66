// SPDX-License-Identifier: Apache-2.0
#pragma once
// The two clocks of this host, for stores that have no server.

#include "core/time.hpp"

namespace dibs::detail {

[[nodiscard]] core::store_now host_clock_now() noexcept;

}  // namespace dibs::detail
