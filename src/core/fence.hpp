// SPDX-License-Identifier: Apache-2.0
#pragma once
// The fencing token: a number that grows with every grant of a key, so that the guarded resource
// can refuse a holder whose lease is over.
//
// Source: M. Kleppmann, "How to do distributed locking" (2016), for fencing; the hybrid of counter
// and clock is reasoned in docs/concepts/fences.md.

#include "core/time.hpp"

#include <algorithm>
#include <cstdint>

namespace dibs::core {

/// 0 means "no fence". Fits in 63 bits; in 53 until the year 2255, so that a Lua or JSON double
/// holds it.
using fence_number = std::uint64_t;

/// Fences first..last, all belonging to one grant, for handing the lease from caller to caller in a
/// process.
struct fence_block {
    fence_number first = 0;
    fence_number last = 0;

    friend bool operator==(const fence_block&, const fence_block&) = default;
    [[nodiscard]] bool contains(fence_number fence) const noexcept {
        return fence != 0 && first <= fence && fence <= last;
    }
};

/// The fences of the next grant of a key whose last fence was `stored`.
///
/// One fence is max(stored + 1, wall clock in microseconds, floor + 1): it rises even when the
/// stored number is lost, provided the wall clock is not behind the last grant that was lost. A
/// block of `wanted` fences ends at that same number and reaches back at most to stored + 1, so it
/// never outruns the clock: a later grant after a loss of the stored number still gets a larger
/// one.
[[nodiscard]] constexpr fence_block next_fences(fence_number stored,
                                                wall_instant now,
                                                fence_number floor,
                                                std::uint32_t wanted) noexcept {
    const auto base = std::max(stored, floor);
    const auto micros = now.time_since_epoch().count();
    const auto clock = micros > 0 ? static_cast<fence_number>(micros) : fence_number{0};
    if (clock <= base) {
        return {base + 1, base + 1};
    }
    const auto room = clock - base;
    const auto count = std::min<fence_number>(std::max<std::uint32_t>(wanted, 1), room);
    return {clock - count + 1, clock};
}

/// The block of a grant, with up to `wanted` further fences at its end, never beyond the clock.
/// `stored` is the last fence of the key; a block that does not end there (shared grants) stays as
/// it is.
[[nodiscard]] constexpr fence_block extended(fence_block block,
                                             fence_number stored,
                                             wall_instant now,
                                             std::uint32_t wanted) noexcept {
    const auto micros = now.time_since_epoch().count();
    const auto clock = micros > 0 ? static_cast<fence_number>(micros) : fence_number{0};
    if (block.last != stored || clock <= stored) {
        return block;
    }
    return {block.first, std::min<fence_number>(clock, stored + wanted)};
}

}  // namespace dibs::core
