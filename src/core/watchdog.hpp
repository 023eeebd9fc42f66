// SPDX-License-Identifier: Apache-2.0
#pragma once
// Renews all leases of a client, and tells when one is lost.
//
// Renewals that are due together travel in one batch, and stay together. A lease is renewed until
// its deadline, not for a number of tries; at the deadline it is lost, by its own timer, even while
// a renewal hangs.
//
// Thread safety: none; it lives on the executor.

#include "core/batcher.hpp"
#include "core/environment.hpp"
#include "core/lease_state.hpp"
#include "core/undo.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

namespace dibs::core {

struct watchdog_counters {
    std::uint64_t renewed = 0;
    std::uint64_t renew_failed = 0;
    std::uint64_t lost = 0;
};

class watchdog {
  public:
    using lease_ptr = std::shared_ptr<lease_state>;

    struct listener {
        /// A lease ended otherwise than by release. Called before its holder is told.
        std::function<void(const lease_ptr&)> lost;
        /// A renewal had no good answer; it will be tried again.
        std::function<void(const lease_state&, const answer&)> renewal_failed;
    };

    watchdog(environment env, batcher& through, undo& doubts, listener told);
    ~watchdog();
    watchdog(const watchdog&) = delete;
    watchdog& operator=(const watchdog&) = delete;

    /// Begins to guard a lease that was granted by a request sent at `sent`.
    void guard(const lease_ptr& lease, instant sent) { guard(lease, sent, env_.time.now()); }
    void guard(const lease_ptr& lease, instant sent, instant now);

    /// Stops guarding a lease, without ending it. False: it was not guarded.
    bool forget(const lease_state& lease);

    /// Whether a renewal of it is on its way or in doubt.
    [[nodiscard]] bool in_doubt(const lease_state& lease) const;

    /// Renews now, for `ttl` from then on. `done` hears a reply whose answer is `renewed`,
    /// `not_held` or `failed`.
    void renew_now(const lease_ptr& lease, nanoseconds ttl, batcher::completion done);

    /// Renews with a change of holder id or attachment. As renew_now.
    void change(const lease_ptr& lease, renew::change into, batcher::completion done);

    /// Ends a lease as lost and tells its holder; what the store still has of it is released in the
    /// background.
    void lose(const lease_ptr& lease, errc reason);

    /// Renews all leases at once: the store thinks that some of them may have ended.
    void doubt_all();

    /// All leases that are guarded.
    [[nodiscard]] std::vector<lease_ptr> guarded() const;
    [[nodiscard]] const watchdog_counters& counters() const noexcept { return counters_; }

  private:
    using guarded_ptr = std::shared_ptr<guarded_lease>;

    void link(guarded_lease& added) noexcept;
    void unlink(guarded_lease& gone) noexcept;
    void wake(guarded_lease& which);
    void schedule(guarded_lease& which, instant now);
    void send(guarded_lease& which, instant now);
    void answered(const guarded_ptr& which, const reply& heard);
    void answered_late(guarded_lease& which,
                       std::uint64_t number,
                       nanoseconds ttl,
                       const reply& heard);
    [[nodiscard]] bool renewed(guarded_lease& which, const reply& heard);
    void expire(guarded_lease& which, instant now);
    void ask_holder_to_stop(guarded_lease& which);
    [[nodiscard]] nanoseconds jittered(nanoseconds every, instant sent) const noexcept;

    environment env_;
    batcher& batcher_;
    undo& undo_;
    listener listener_;
    guarded_lease* first_ = nullptr;  ///< of all that are guarded, the latest first
    watchdog_counters counters_;
    std::uint64_t seed_ = 0;
};

}  // namespace dibs::core
