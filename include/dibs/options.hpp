// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a caller can ask for. All members are trivially destructible, so that an options temporary
// inside a co_await expression is safe with g++ 12 (which destroys other aggregates twice there).

#include <chrono>
#include <cstdint>

namespace dibs {

/// "No limit", where an option allows it.
inline constexpr std::chrono::milliseconds forever = std::chrono::milliseconds::max();

/// In which order callers that wait for a key get it.
enum class order : std::uint8_t {
    /// Whoever asks first when it is free; those who wait are woken and race. Fast, and unfair: a
    /// caller may wait for long while others come and go.
    race,
    /// First come, first served, among all processes that wait so: each caller stands in a queue
    /// that the store keeps, a release wakes the first of it alone, and nobody overtakes, `try_acquire`
    /// and waits by `race` included: these get the key when the queue is empty. A caller that dies
    /// or is cut off is passed over a few seconds later, at once where the store notices a death.
    /// Costs a message for each change of hands, where callers of one process that race pass the
    /// lease on among themselves.
    queue,
};

struct acquire_options {
    /// How long the lease lasts without a renewal. Others get the key this much later at the latest
    /// when this process dies or is cut off. At least the store's `ttl_min` and at most its
    /// `ttl_max`; zero is refused. Make it longer than the pauses that your process may suffer.
    std::chrono::milliseconds ttl = std::chrono::seconds{30};

    /// `acquire` alone: how long to wait for a key that somebody else has. Zero: one try. `forever`
    /// is allowed.
    std::chrono::milliseconds wait = std::chrono::milliseconds::zero();

    /// `acquire` alone: the order among those who wait.
    dibs::order order = dibs::order::race;

    /// How long one try may take until it is an error, also when the store never answers. Zero is
    /// refused.
    std::chrono::milliseconds timeout = std::chrono::seconds{5};

    /// Renew in the background until released. Without it the lease ends at its first deadline.
    bool renew = true;

    /// How often to renew. Zero: a third of the ttl, the right choice nearly always. More than half
    /// of the ttl is refused, since then one lost renewal loses the lease.
    std::chrono::milliseconds renew_every = std::chrono::milliseconds::zero();

    /// The longest time in all that the lease may be held; then it is given back and lost with
    /// errc::max_hold_reached. Zero: no limit.
    std::chrono::milliseconds max_hold = std::chrono::milliseconds::zero();

    /// How much earlier than the deadline `lost()` is requested, for work that needs time to stop.
    /// Less than half of the ttl. Zero: at the deadline.
    std::chrono::milliseconds notice = std::chrono::milliseconds::zero();

    /// The fence must exceed this one too: for a resource that has already seen fences of another
    /// store.
    std::uint64_t fence_floor = 0;

    /// The lease outlives its process and ends by expiry or release alone. For handles that scripts
    /// pass around.
    bool detached = false;
};

}  // namespace dibs
