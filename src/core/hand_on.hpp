// SPDX-License-Identifier: Apache-2.0
#pragma once
// When a lease may pass from one caller of a process to the next without asking the store.
//
// Source: D. Dice, V. Marathe, N. Shavit, "Lock Cohorting" (PPoPP 2012), for passing a lock within
// a cohort a bounded number of times; a lease adds that the time left must do, that the time in all
// is bounded too, and that every caller gets a fence of its own.

#include "core/fence.hpp"
#include "core/time.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace dibs::core {

struct hand_on_question {
    bool leaver_in_doubt = false;  ///< a renewal of the leaver is on its way
    unsigned hops = 0;             ///< how often the lease was handed on in a row
    nanoseconds kept_for{};        ///< since the store granted it to this process
    nanoseconds round_trip{};      ///< that this grant took
    fence_number leaver_fence = 0;
    fence_block block;            ///< of the grant
    nanoseconds remaining{};      ///< until the deadline
    nanoseconds next_ttl{};       ///< what the next caller asked for
    fence_number next_floor = 0;  ///< the next caller's fence must exceed it
};

/// Others may wait outside, so a process passes a lease on at most this often before it really gives
/// it back,
inline constexpr unsigned hops_max = 64;

/// or for this long, whichever is more: where work is short, so many hops take less time than asking
/// the store does, and others wait no longer by it than it takes to wake them.
inline constexpr nanoseconds hand_on_freely = milliseconds{2};

/// Nor for much longer than giving it back takes: with long work, that many hops would shut the others
/// out for seconds or minutes. One round trip in fifty is what fairness may cost; and a store that is
/// near, or far away, makes it neither very short nor very long.
inline constexpr int hand_on_round_trips = 50;
inline constexpr nanoseconds hand_on_within_least = milliseconds{10};
inline constexpr nanoseconds hand_on_within_most = std::chrono::seconds{1};

[[nodiscard]] constexpr nanoseconds hand_on_within(nanoseconds round_trip) noexcept {
    return round_trip >= hand_on_within_most / hand_on_round_trips
               ? hand_on_within_most
               : std::max(hand_on_within_least, round_trip * hand_on_round_trips);
}

/// How many fences a grant should bring when callers of the process stand in line: as many as can be
/// passed on meanwhile.
inline constexpr std::uint32_t fences_for_a_line = 2048;

[[nodiscard]] constexpr bool may_hand_on(const hand_on_question& asked) noexcept {
    const auto next_fence = asked.leaver_fence + 1;
    const bool often_enough = asked.hops >= hops_max && asked.kept_for >= hand_on_freely;
    return !asked.leaver_in_doubt && !often_enough &&
           asked.kept_for < hand_on_within(asked.round_trip) && asked.block.contains(next_fence) &&
           next_fence > asked.next_floor && asked.remaining * 2 >= asked.next_ttl;
}

}  // namespace dibs::core
