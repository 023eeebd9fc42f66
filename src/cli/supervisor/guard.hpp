// SPDX-License-Identifier: Apache-2.0
#pragma once
// The guard: a small process of its own that stops the child in time when the wrapper cannot,
// because it was killed or stopped. It lives in a session of its own, so that what hits the
// wrapper's terminal or group does not hit it; it keeps no descriptor but its socket, so that it
// holds neither the caller's pipes nor the lease.
//
// How they talk:
//   - the deadline and the wrapper's own stopping stand in a page that both map. A renewal costs
//   one store, wakes
//     nobody and cannot be missed or arrive late;
//   - the child registers itself over the socket before it becomes the command, with a pidfd: so
//   there is no moment
//     at which it runs unguarded, however early the wrapper dies;
//   - the end of the socket without "over" in the page tells that the wrapper is gone.
//
// When the guard itself is killed, the wrapper carries on alone.

#include "cli/supervisor/stopper.hpp"
#include "core/time.hpp"

#include <sys/types.h>

#include <atomic>
#include <cstdint>

namespace dibs::cli {

/// Shared by wrapper and guard.
struct guard_page {
    std::atomic<std::int64_t> deadline_ns{0};  ///< of the lease, on CLOCK_BOOTTIME; 0: none yet
    std::atomic<std::int64_t> kill_ns{
        0};                         ///< the wrapper has sent TERM and will KILL then; 0: it has not
    std::atomic<bool> over{false};  ///< nothing is left to guard
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free &&
              std::atomic<bool>::is_always_lock_free);

class guard {
  public:
    /// Forks it. To be called before the process has a second thread.
    explicit guard(core::nanoseconds grace);
    /// Ends it.
    ~guard();
    guard(const guard&) = delete;
    guard& operator=(const guard&) = delete;

    [[nodiscard]] pid_t process() const noexcept { return process_; }
    [[nodiscard]] guard_page& page() noexcept { return *page_; }

    /// For the child, between fork and exec.
    [[nodiscard]] int socket() const noexcept { return socket_; }

    /// The wrapper has sent TERM to the group.
    void stopping(core::instant kill_at) noexcept;

    /// The guard has ended and was reaped.
    void ended() noexcept { process_ = -1; }

  private:
    guard_page* page_ = nullptr;
    int socket_ = -1;
    pid_t process_ = -1;
};

/// In the child: tells the guard who it is. Async-signal-safe.
bool register_with_guard(int socket) noexcept;

}  // namespace dibs::cli
