// SPDX-License-Identifier: Apache-2.0
#pragma once
// A lease: a key, held for a limited time and renewed in the background, with a fencing token.
//
// Not a mutex. A process that stalls for longer than the ttl is no longer the holder, however sure
// of it it is, and nothing on its side can prevent that. `held()` means "was held when checked".
// Let the data refuse a late writer: hand `fence()` to it (docs/concepts/fences.md).
//
// At most one exclusive lease of a key is held at a time, and of shared ones no more than its capacity
// allows (mode in options.hpp), as long as the clocks of holder and store run at
// the same speed within 1 % and the store keeps what its page promises (docs/concepts/limits.md).

#include <dibs/error.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <system_error>

namespace dibs {

namespace detail {
class client_core;
struct lease_access;
struct lease_handle;
}  // namespace detail

/// What a release found.
enum class release_outcome {
    released,  ///< it was ours, and is free now
    not_held,  ///< it was not ours any more: the work was not protected to its end
};

/// The handle of a lease. Movable; destroying it gives the lease back.
///
/// | state    | held() | fence()  | left by                                              |
/// |----------|--------|----------|------------------------------------------------------|
/// | held     | true   | a number | release, hand_over, deadline, loss, destruction      |
/// | lost     | false  | throws   | release, destruction                                 |
/// | empty    | false  | throws   | move assignment                                      |
///
/// Lost is final: no later answer of the store makes the handle valid again.
///
/// Thread safety: held, remaining, fence, last_fence, lost, lost_reason, key, renew and release may
/// be called from any thread at the same time; of several releases one returns `released`. Moving,
/// hand_over and destroying need the handle for themselves. A handle must not be used in a forked
/// child.
class lease {
  public:
    /// An empty handle.
    lease() noexcept = default;
    lease(lease&& other) noexcept = default;
    lease& operator=(lease&& other) noexcept;

    /// Gives the lease back, by holder id, if it is still held. Does not wait for the store to
    /// answer and does not throw; a release that fails ends by expiry. Call release() to learn how
    /// it went. Allowed inside a callback on lost().
    ~lease() {
        if (handle_) {
            drop();
        }
    }

    /// The key, as it was acquired. Empty for an empty handle.
    [[nodiscard]] const std::string& key() const noexcept;

    /// Whether the lease is held at this moment, by this process's own clock. Never true at or
    /// after the deadline.
    [[nodiscard]] bool held() const noexcept;
    [[nodiscard]] explicit operator bool() const noexcept { return held(); }

    /// How long it is held for sure if no renewal succeeds. Zero when it is not held.
    [[nodiscard]] std::chrono::nanoseconds remaining() const noexcept;

    /// The fencing token of this lease: larger than that of every earlier holder of the key, and
    /// constant for as long as it is held. That of a shared lease (permits, readers) tells its holder
    /// from others, but does not order: several hold the key at once. Errors: a lease_lost condition when it is not held (any
    /// more).
    [[nodiscard]] std::uint64_t fence() const;
    [[nodiscard]] std::uint64_t fence(std::error_code& error) const noexcept;

    /// The same number whether held or not, for logs. 0 for an empty handle.
    [[nodiscard]] std::uint64_t last_fence() const noexcept;

    /// Requested once, on a thread of the client's, when the lease is lost (or `notice` before its
    /// deadline). Not requested by release. A callback may destroy the handle and call the client; it
    /// must not throw. Those of all leases of a client run one after the other, so one that takes its
    /// time keeps the others waiting: held() never waits.
    [[nodiscard]] std::stop_token lost() const noexcept;

    /// Why it is lost; zero while it is not. After a release that returned not_held: why it was not.
    [[nodiscard]] std::error_code lost_reason() const noexcept;

    /// Gives the lease back and tells how that went. After it returned, whatever it returned, no
    /// renewal of this lease is sent any more. Errors: outcome_unknown and retryable conditions:
    /// the store could not be asked in time; the lease ends by expiry at the latest, and the client
    /// goes on trying to release it until then.
    [[nodiscard]] release_outcome release();
    [[nodiscard]] release_outcome release(std::error_code& error) noexcept;

    /// Renews now, for `ttl` from now (a shorter one than before shortens the lease). Later
    /// renewals use it too. Errors: lease_lost; outcome_unknown and retryable, after which the
    /// lease may still be held: look at held().
    void renew(std::chrono::milliseconds ttl);
    void renew(std::chrono::milliseconds ttl, std::error_code& error) noexcept;

    /// Turns the lease into text, for another process to adopt (`client::adopt`); this handle is
    /// empty afterwards and nobody renews the lease until it is adopted. The text is a secret:
    /// whoever has it has the lease. Errors: as renew; the handle then stays as it is.
    [[nodiscard]] std::string hand_over();
    [[nodiscard]] std::string hand_over(std::error_code& error) noexcept;

  private:
    friend struct detail::lease_access;
    explicit lease(std::shared_ptr<detail::lease_handle> handle) noexcept;
    void drop() noexcept;

    std::shared_ptr<detail::lease_handle> handle_;
};

}  // namespace dibs
