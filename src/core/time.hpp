// SPDX-License-Identifier: Apache-2.0
#pragma once
// The two clocks of the product, kept apart by type so that they cannot be compared by mistake.
//
// `instant` is a moment on the local clock that counts suspend (CLOCK_BOOTTIME). Deadlines and
// timers use it. `store_instant` is a moment on a store's own clock. Who holds a lease is decided
// by that clock alone. `wall_instant` is a moment on a store's calendar clock, which may be
// stepped. Only what must outlive a reboot uses it: how long a result is fresh and kept, how long
// an operator's hold lasts, fences.

#include <chrono>
#include <cstdint>

namespace dibs::core {

using nanoseconds = std::chrono::nanoseconds;
using microseconds = std::chrono::microseconds;
using milliseconds = std::chrono::milliseconds;

struct boot_clock {
    using duration = nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<boot_clock, duration>;
    static constexpr bool is_steady = true;
};
using instant = boot_clock::time_point;

struct store_clock {
    using duration = microseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<store_clock, duration>;
    static constexpr bool is_steady = false;
};
using store_instant = store_clock::time_point;

struct wall_clock {
    using duration = microseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<wall_clock, duration>;
    static constexpr bool is_steady = false;
};
using wall_instant = wall_clock::time_point;

/// What a store's clocks say at the moment of an atomic step.
struct store_now {
    store_instant lease;  ///< decides expiry; on one host CLOCK_BOOTTIME, on a server its own clock
    wall_instant wall;    ///< microseconds since 1970; feeds fences, results and holds
};

}  // namespace dibs::core
