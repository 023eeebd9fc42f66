// SPDX-License-Identifier: Apache-2.0
#pragma once
// Randomness that a seed repeats.

#include "core/environment.hpp"

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <random>
#include <span>

namespace dibs::testing {

class seeded_entropy final : public core::entropy {
  public:
    explicit seeded_entropy(std::uint64_t seed) : engine_{seed} {}

    void fill(std::span<std::byte> bytes) override {
        const std::lock_guard guard{mutex_};
        for (auto& byte : bytes) {
            byte = static_cast<std::byte>(engine_() & 0xFFU);
        }
    }

  private:
    std::mutex mutex_;
    std::mt19937_64 engine_;
};

}  // namespace dibs::testing
