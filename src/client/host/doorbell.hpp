// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a blocking caller waits on. std::atomic::wait goes to sleep through a table that all waiters
// of the process share; with many callers that shows.
//
// Thread safety: one waits, any thread rings.

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <thread>

namespace dibs::detail {

class doorbell {
  public:
    void ring() noexcept {
        if (state_.exchange(state::rung, std::memory_order_release) == state::sleeping) {
            ::syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
        }
    }

    [[nodiscard]] bool rung() const noexcept {
        return state_.load(std::memory_order_acquire) == state::rung;
    }

    void wait() noexcept {
        for (int left = yields_before_sleep; left > 0 && !rung(); --left) {
            std::this_thread::yield();
        }
        auto seen = state::quiet;
        state_.compare_exchange_strong(seen, state::sleeping, std::memory_order_acquire);
        while (!rung()) {
            ::syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, state::sleeping, nullptr, nullptr, 0);
        }
    }

    /// Requires: nobody will ring for what was before.
    void reset() noexcept { state_.store(state::quiet, std::memory_order_relaxed); }

  private:
    /// With many callers on few cores an answer often comes while the others run, without anybody
    /// having to be woken. More cost more than they save (bench/sqlite_cycles, 64 threads: 0, 4 and
    /// 16 yields give 110,000, 143,000 and 127,000 cycles per second).
    static constexpr int yields_before_sleep = 4;

    struct state {
        static constexpr int quiet = 0;
        static constexpr int rung = 1;
        static constexpr int sleeping = 2;
    };

    std::atomic<int> state_{state::quiet};
    static_assert(sizeof(std::atomic<int>) == sizeof(int), "a futex is an int");
};

}  // namespace dibs::detail
