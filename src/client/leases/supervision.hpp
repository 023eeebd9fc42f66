// SPDX-License-Identifier: Apache-2.0
#pragma once
// What keeps a child tree, and the process that watches it, in step with a lease.

#include <dibs/client.hpp>

#include <cstdint>
#include <functional>
#include <string>

namespace dibs::detail {

/// The descriptor that a child tree must inherit so that its end, and only its end, ends the lease
/// early. -1: none.
[[nodiscard]] int liveness_descriptor(client& of) noexcept;

/// `told` is called with the deadline of the lease (CLOCK_BOOTTIME, nanoseconds): once before this
/// returns, and whenever it moves, on a thread of the client's. It must be quick, must not throw
/// and must not call the client.
void on_deadline(lease& of, std::function<void(std::int64_t boottime_ns)> told) noexcept;

/// What the store said to the last renewal, if that failed; else empty. Also of a lease that was lost.
[[nodiscard]] std::string renewal_trouble(lease& of) noexcept;

}  // namespace dibs::detail
