// SPDX-License-Identifier: Apache-2.0
#pragma once
// When to try a connection again: later after each failure, and not all clients at once.

#include "core/environment.hpp"
#include "core/time.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>

namespace dibs::store::remote {

class patience {
  public:
    void failed(core::instant now, core::entropy& random) {
        const auto pause = std::min(first * (1U << std::min(failures_, 7U)), longest);
        ++failures_;
        std::array<std::byte, 1> chance{};
        random.fill(chance);
        const auto share = std::to_integer<unsigned>(chance[0]);
        until_ = now + pause / 2 + pause / 2 * share / 255;
    }
    void succeeded() noexcept { failures_ = 0; }

    /// Not to be tried before.
    [[nodiscard]] core::instant until() const noexcept { return until_; }
    [[nodiscard]] unsigned failures() const noexcept { return failures_; }

  private:
    static constexpr core::nanoseconds first = std::chrono::milliseconds{20};
    static constexpr core::nanoseconds longest = std::chrono::seconds{2};

    core::instant until_{};
    unsigned failures_ = 0;
};

}  // namespace dibs::store::remote
