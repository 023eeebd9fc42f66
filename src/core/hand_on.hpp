// SPDX-License-Identifier: Apache-2.0
#pragma once
// When a lease may pass from one caller of a process to the next without asking the store.
//
// Source: D. Dice, V. Marathe, N. Shavit, "Lock Cohorting" (PPoPP 2012), for passing a lock within
// a cohort a bounded number of times; a lease adds that the time left must do, that the time in all
// is bounded too, and that every caller gets a fence of its own.

#include "core/fence.hpp"
#include "core/time.hpp"

namespace dibs::core {

struct hand_on_question {
    bool leaver_in_doubt = false;  ///< a renewal of the leaver is on its way
    unsigned hops = 0;             ///< how often the lease was handed on in a row
    nanoseconds kept_for{};        ///< since the store granted it to this process
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

/// Nor after this time: with long work, that many hops would shut the others out for minutes, and a
/// round trip more or less does not matter then.
inline constexpr nanoseconds hand_on_within = std::chrono::seconds{1};

/// How many fences a grant should bring when callers of the process stand in line: as many as can be
/// passed on meanwhile.
inline constexpr std::uint32_t fences_for_a_line = 2048;

[[nodiscard]] constexpr bool may_hand_on(const hand_on_question& asked) noexcept {
    const auto next_fence = asked.leaver_fence + 1;
    const bool often_enough = asked.hops >= hops_max && asked.kept_for >= hand_on_freely;
    return !asked.leaver_in_doubt && !often_enough && asked.kept_for < hand_on_within &&
           asked.block.contains(next_fence) && next_fence > asked.next_floor &&
           asked.remaining * 2 >= asked.next_ttl;
}

}  // namespace dibs::core
