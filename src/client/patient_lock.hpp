// SPDX-License-Identifier: Apache-2.0
#pragma once
// Takes a mutex that others hold for a few instructions only. A thread that sleeps on such a mutex
// costs two system calls and a switch, many times what it waits for.

#include <mutex>
#include <thread>

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace dibs::detail {

inline void pause_briefly() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    _mm_pause();
#endif
}

[[nodiscard]] inline std::unique_lock<std::mutex> patient_lock(std::mutex& mutex) {
    constexpr int tries = 200;
    for (int left = tries; left > 0; --left) {
        if (mutex.try_lock()) {
            return std::unique_lock{mutex, std::adopt_lock};
        }
        pause_briefly();
    }
    return std::unique_lock{mutex};
}

}  // namespace dibs::detail
