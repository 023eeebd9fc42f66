// SPDX-License-Identifier: Apache-2.0
#pragma once
// Waits, in real time, for what another thread does.

#include <chrono>
#include <thread>

namespace dibs::testing {

/// Whether `told` holds at last, within `longest`.
template <typename Condition>
[[nodiscard]] bool eventually(Condition told,
                              std::chrono::steady_clock::duration longest = std::chrono::seconds{
                                  20}) {
    const auto end = std::chrono::steady_clock::now() + longest;
    while (!told()) {
        if (std::chrono::steady_clock::now() >= end) {
            return told();
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
    return true;
}

}  // namespace dibs::testing
