// SPDX-License-Identifier: Apache-2.0
#pragma once
// When a child is told to stop, and when it is made to. Decides only: it is given the time and what
// happened, and answers with what to do. The wrapper and its guard run the same machine, each on a
// clock of its own.
//
// The rule: whoever is the next holder must find nobody at work. So the group gets TERM at
// `deadline - margin - grace` and KILL at `deadline - margin` at the latest. Reaching the first of
// the two is final, even if a renewal succeeds a moment later: the child has been told to stop
// already.
//
// | state    | left by                                                                     |
// |----------|-----------------------------------------------------------------------------|
// | running  | the stop instant, a loss, max_hold, max_runtime, wrapper_gone -> stopping   |
// | stopping | kill instant -> killed                                                      |
// | any      | force -> killed                                                             |

#include "core/time.hpp"

#include <cstdint>

namespace dibs::cli {

inline constexpr core::instant never = core::instant::max();

enum class stop_cause : std::uint8_t {
    none,
    deadline,  ///< no renewal succeeded in time
    lost,      ///< the lease ended before its deadline: revoked, taken
    max_hold,
    max_runtime,
    wrapper_gone,  ///< for the guard: nobody is left who would renew or tell
    forced,        ///< asked for twice
};

enum class stop_action : std::uint8_t { none, terminate, kill };

struct stop_limits {
    core::nanoseconds grace{};  ///< between TERM and KILL
    core::nanoseconds margin = core::milliseconds{250};
    core::instant max_hold = never;
    core::instant max_runtime = never;
};

class stopper {
  public:
    constexpr stopper(const stop_limits& limits, core::instant deadline) noexcept
        : limits_(limits), deadline_(deadline) {}

    /// The lease was renewed.
    constexpr void deadline_is(core::instant deadline) noexcept { deadline_ = deadline; }

    constexpr void lease_lost() noexcept {
        lost_ = true;
        if (cause_ == stop_cause::max_hold || cause_ == stop_cause::max_runtime) {
            cause_ = stop_cause::lost;
        }
    }

    constexpr void wrapper_gone() noexcept { wrapper_gone_ = true; }

    /// KILL at once.
    constexpr void force() noexcept { forced_ = true; }

    /// Somebody else has sent TERM already; only the KILL is left to do.
    constexpr void terminated_by_other(core::instant kill_at) noexcept {
        if (stage_ == stage::running) {
            stage_ = stage::stopping;
            cause_ = stop_cause::deadline;
            kill_at_ = kill_at;
        }
    }

    /// What to do now. To be called again until it answers `none`.
    [[nodiscard]] stop_action next(core::instant now) noexcept;

    /// When to ask again, if nothing happens before.
    [[nodiscard]] core::instant wake_at() const noexcept;

    /// Whether KILL was asked for: nothing is left to be done.
    [[nodiscard]] constexpr bool killed() const noexcept { return stage_ == stage::killed; }
    [[nodiscard]] constexpr bool stopping() const noexcept { return stage_ != stage::running; }
    [[nodiscard]] constexpr stop_cause cause() const noexcept { return cause_; }
    /// Once stopping: the instant of KILL.
    [[nodiscard]] constexpr core::instant kill_at() const noexcept { return kill_at_; }

  private:
    enum class stage : std::uint8_t { running, stopping, killed };

    [[nodiscard]] constexpr core::instant stop_at() const noexcept {
        return deadline_ == never ? never : deadline_ - limits_.margin - limits_.grace;
    }
    [[nodiscard]] stop_cause due(core::instant now) const noexcept;

    stop_limits limits_;
    core::instant deadline_;
    core::instant kill_at_ = never;
    stage stage_ = stage::running;
    stop_cause cause_ = stop_cause::none;
    bool lost_ = false;
    bool wrapper_gone_ = false;
    bool forced_ = false;
};

}  // namespace dibs::cli
