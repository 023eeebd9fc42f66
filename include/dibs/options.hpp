// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a caller can ask for. All members are trivially destructible, so that an options temporary
// inside a co_await expression is safe with g++ 12 (which destroys other aggregates twice there).

#include <chrono>
#include <cstdint>
#include <limits>

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

/// How much of a key a lease takes. Made by `exclusive`, `shared` and `permits(n).of(capacity)`.
///
/// Exclusive leases go with no other lease of the key, of whatever mode. Shared ones go with each
/// other, and all who share a key must name the same capacity (errc::capacity_differs): readers and
/// permits do not mix, and neither do permits of different capacities.
///
/// | mode                     | at the same time                              | use              |
/// |--------------------------|-----------------------------------------------|------------------|
/// | exclusive                | one holder                                    | mutex, writer    |
/// | shared                   | any number of readers, and no exclusive one   | reader           |
/// | permits(n).of(capacity)  | holders of at most `capacity` permits in all  | semaphore        |
class mode {
  public:
    /// Exclusive.
    constexpr mode() noexcept = default;

    /// A capacity without limit, as readers have it.
    static constexpr std::uint32_t unlimited = std::numeric_limits<std::uint32_t>::max();

    [[nodiscard]] constexpr std::uint32_t weight() const noexcept { return weight_; }
    [[nodiscard]] constexpr std::uint32_t capacity() const noexcept { return capacity_; }
    friend constexpr bool operator==(const mode&, const mode&) noexcept = default;

    /// Some permits of a semaphore; `of` tells how many there are.
    class permits {
      public:
        constexpr explicit permits(std::uint32_t taken) noexcept : taken_(taken) {}
        [[nodiscard]] constexpr mode of(std::uint32_t capacity) const noexcept {
            return {taken_, capacity};
        }

      private:
        std::uint32_t taken_;
    };

    /// A reader beside others.
    [[nodiscard]] static constexpr mode reader() noexcept { return {1, unlimited}; }

  private:
    constexpr mode(std::uint32_t weight, std::uint32_t capacity) noexcept
        : weight_(weight), capacity_(capacity) {}

    std::uint32_t weight_ = 1;
    std::uint32_t capacity_ = 1;
};

/// The key for one holder alone: a mutex, or the writer beside readers.
inline constexpr mode exclusive{};

/// The key beside other readers. With order::race readers who come and go may keep a writer out for
/// as long as they overlap; with order::queue a writer that waits stops those who come after it.
inline constexpr mode shared = mode::reader();

/// So many permits of a semaphore: `permits(2).of(5)`. A capacity of 1 is the same as exclusive.
[[nodiscard]] constexpr mode::permits permits(std::uint32_t taken) noexcept {
    return mode::permits{taken};
}

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

    /// How much of the key: all of it (`exclusive`), a reader's part (`shared`), or some permits
    /// (`permits(n).of(capacity)`). Fences of shared leases identify their holder but do not order:
    /// a resource that refuses smaller fences must be given those of exclusive leases alone.
    dibs::mode mode = dibs::exclusive;

    /// How long one try may take until it is an error, also when the store never answers. A store
    /// that is not reached is tried again until then; one that refuses (errc::store_refused) is not
    /// by a call that does not wait; one that waits goes on until its end. Zero is refused.
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
