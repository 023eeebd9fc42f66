// SPDX-License-Identifier: Apache-2.0
#pragma once
// A mutex for what takes a few instructions. A thread that sleeps on such a mutex costs two system
// calls and a switch, many times what it waits for; here it looks again, and rests only when the one
// who has it seems not to run.
//
// Thread safety: any thread.

#include <atomic>
#include <chrono>
#include <thread>

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace dibs::detail {

class brief_mutex {
  public:
    void lock() noexcept {
        while (taken_.exchange(true, std::memory_order_acquire)) {
            wait();
        }
    }

    void unlock() noexcept { taken_.store(false, std::memory_order_release); }

  private:
    void wait() const noexcept {
        constexpr int looks = 200;
        for (int left = looks; left > 0; --left) {
            if (!taken_.load(std::memory_order_relaxed)) {
                return;
            }
#if defined(__x86_64__) || defined(__i386__)
            _mm_pause();
#endif
        }
        // Yielding would not do: this thread may be the more urgent one.
        std::this_thread::sleep_for(std::chrono::microseconds{50});
    }

    std::atomic<bool> taken_{false};
};

}  // namespace dibs::detail
