// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether to look for an answer again and again for a moment before sleeping. A server near by answers
// within some 20 us, and being woken after a sleep takes as long again. Where the answers take longer,
// nearly all waits sleep at once: after each look in vain twice as many, and then one tries anew.

#include "core/time.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace dibs::store::remote {

/// Thread safety: none.
class spin {
  public:
    /// So long at most; what one wait may burn for nothing.
    static constexpr core::nanoseconds longest = std::chrono::microseconds{50};

    /// Whether the next wait begins with looking. To be asked once for each.
    [[nodiscard]] bool pays() noexcept {
        if (passed_by_ > 0) {
            --passed_by_;
            return false;
        }
        return true;
    }
    /// How the looking ended.
    void ended(bool found) noexcept {
        failures_ = found ? 0 : std::min(failures_ + 1, failures_max);
        passed_by_ = (std::uint32_t{1} << failures_) - 1;
    }

  private:
    static constexpr std::uint32_t failures_max = 10;

    std::uint32_t failures_ = 0;
    std::uint32_t passed_by_ = 0;
};

}  // namespace dibs::store::remote
