// SPDX-License-Identifier: Apache-2.0
#pragma once
// The life of one lease: held until released, or until lost for one reason, once and for all.
//
//   held ──release──▶ released
//    │
//    └──deadline, taken, revoked, gone, max_hold, closed──▶ lost(reason)
//
// Any thread may look; only the executor moves the deadline and ends the lease. The one exception
// is a reader who finds the deadline passed: it makes the loss final on the spot, so that nobody
// ever sees "held" after "lost", even when a renewal is answered in that very moment.

#include "core/deadline.hpp"
#include "core/environment.hpp"
#include "core/fence.hpp"
#include "core/holder_id.hpp"
#include "core/unique_function.hpp"

#include <dibs/error.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>

namespace dibs::core {

struct lease_terms {
    nanoseconds ttl{};
    nanoseconds renew_every{};  ///< zero: never
    nanoseconds max_hold{};     ///< zero: no limit
    nanoseconds notice{};       ///< how much before the deadline `lost` is requested
    bool attached = true;
};

struct guarded_lease;  // what the watchdog knows of a lease

class lease_state {
  public:
    lease_state(std::string key,
                holder_id holder,
                fence_number fence,
                lease_terms terms,
                instant since,
                instant deadline);

    ~lease_state();
    lease_state(const lease_state&) = delete;
    lease_state& operator=(const lease_state&) = delete;

    [[nodiscard]] const std::string& key() const noexcept { return key_; }
    [[nodiscard]] fence_number fence() const noexcept { return fence_; }
    [[nodiscard]] instant deadline() const noexcept {
        return instant{nanoseconds{deadline_.load(std::memory_order_acquire)}};
    }
    /// When it was granted, by the local clock.
    [[nodiscard]] instant since() const noexcept { return since_; }

    /// Never true at or after the deadline; never true again after false. Thread safety: any
    /// thread.
    [[nodiscard]] bool held(instant now) noexcept;

    /// Zero while held or released in time; else the reason. Thread safety: any thread.
    [[nodiscard]] std::error_code lost_reason() const noexcept;

    [[nodiscard]] bool released() const noexcept { return status_.load() == status_released; }
    /// Thread safety: any thread.
    [[nodiscard]] std::stop_token lost() const;

    // --- on the executor alone -------------------------------------------------------------------

    /// A renewal succeeded. False when the lease has ended: the answer changes nothing then.
    [[nodiscard]] bool prolong(instant now, instant deadline) noexcept;

    /// Moves the deadline to the earlier of the two.
    void shorten(instant deadline_at_most) noexcept;

    /// Ends it as lost; false when it had ended before. The caller announces it.
    bool lose(errc reason) noexcept;

    /// Ends it as released; false when it had ended before.
    bool end_by_release() noexcept;

    /// The release found that the lease had been lost before. It stays released: nobody is notified.
    void released_too_late(errc reason) noexcept { lost_before_ = static_cast<int>(reason); }

    /// What the store said to the last renewal, if that failed; empty: it went well, or none was
    /// answered yet.
    [[nodiscard]] std::string renewal_trouble() const {
        return renewal_trouble_ ? *renewal_trouble_ : std::string{};
    }
    void note_renewal_trouble(std::string text);
    void forget_renewal_trouble() noexcept { renewal_trouble_.reset(); }

    /// Requests `lost`. Runs users' callbacks: to be called through the notifier only.
    void request_lost() noexcept;

    /// Tries of its acquire that may still reach the store, and how late: for whoever ends it.
    struct acquire_doubt {
        bool answered = true;                    ///< there are none
        std::optional<store_instant> not_after;  ///< of all of them; empty: some have none
    };

    holder_id holder;     ///< changes by adoption and detaching
    bool shared = false;  ///< granted beside others
    acquire_doubt doubt;
    lease_terms terms;                              ///< a manual renewal may change the ttl
    unique_function<void(instant), 1> on_deadline;  ///< told when the deadline moves
    std::shared_ptr<guarded_lease> guard;           ///< of the watchdog, while it guards this lease

  private:
    static constexpr int status_held = 0;
    static constexpr int status_released = -1;  // positive values are the errc of the loss

    void move_deadline(instant to) noexcept;

    const std::string key_;
    const fence_number fence_;
    const instant since_;
    std::atomic<std::int64_t> deadline_;
    std::atomic<int> status_{status_held};
    std::atomic<int> lost_before_{0};  // what a release found
    std::unique_ptr<std::string> renewal_trouble_;

    // Made when somebody asks for a token: most leases are given back without anybody having asked.
    mutable std::atomic<std::stop_source*> lost_{nullptr};
    std::atomic<bool> lost_requested_{false};
};

}  // namespace dibs::core
