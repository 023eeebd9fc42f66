// SPDX-License-Identifier: Apache-2.0
#pragma once
// Randomness that is the same on every machine, compiler and build: what the distributions of the
// standard library make of a generator's bits is not laid down. Integers only.
//
// Source: G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators" (OOPSLA
// 2014).

#include "core/time.hpp"

#include <chrono>
#include <cstdint>

namespace dibs::simulation {

class random {
  public:
    explicit random(std::uint64_t seed) noexcept : state_(seed) {}

    std::uint64_t next() noexcept {
        state_ += 0x9E3779B97F4A7C15U;
        auto bits = state_;
        bits = (bits ^ (bits >> 30U)) * 0xBF58476D1CE4E5B9U;
        bits = (bits ^ (bits >> 27U)) * 0x94D049BB133111EBU;
        return bits ^ (bits >> 31U);
    }

    /// 0 .. n-1. Requires: 0 < n <= 2^32. The bias is below 2^-32.
    std::uint64_t below(std::uint64_t n) noexcept { return ((next() >> 32U) * n) >> 32U; }

    /// lo .. hi, both included.
    std::int64_t between(std::int64_t lo, std::int64_t hi) noexcept {
        return lo + static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(hi - lo + 1));
    }
    core::nanoseconds between(core::nanoseconds lo, core::nanoseconds hi) noexcept {
        return core::nanoseconds{between(lo.count(), hi.count())};
    }

    /// Between lo and hi, small values far more often than large ones.
    core::nanoseconds skewed(core::nanoseconds lo, core::nanoseconds hi) noexcept {
        const auto width = (hi - lo).count() >> below(12);
        return lo + core::nanoseconds{between(std::int64_t{0}, width)};
    }

    [[nodiscard]] bool chance(unsigned per_mille) noexcept { return below(1000) < per_mille; }

    /// A generator of its own: what is drawn from it does not change what is drawn here.
    [[nodiscard]] random split() noexcept { return random{next()}; }

  private:
    std::uint64_t state_;
};

}  // namespace dibs::simulation
