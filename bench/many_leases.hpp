// SPDX-License-Identifier: Apache-2.0
#pragma once
// Holds many leases at once, for benchmarks of renewals on every store.

#include "measure.hpp"

#include <dibs/async.hpp>
#include <dibs/dibs.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <semaphore>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace dibs::bench {

/// Acquires many keys at once and keeps the leases.
class keeper {
  public:
    void acquire_all(dibs::client& client, int number) {
        leases_.resize(static_cast<std::size_t>(number));
        for (int at = 0; at < number; ++at) {
            room_.acquire();
            dibs::start_acquire(
                client,
                "lease-" + std::to_string(at),
                {.ttl = std::chrono::seconds{30}, .timeout = std::chrono::seconds{30}},
                std::make_unique<handler>(*this, static_cast<std::size_t>(at)));
        }
        for (int at = 0; at < under_way_max; ++at) {
            room_.acquire();
        }
    }
    [[nodiscard]] std::size_t held() const {
        return static_cast<std::size_t>(std::count_if(
            leases_.begin(), leases_.end(), [](const auto& lease) { return lease.held(); }));
    }

  private:
    static constexpr int under_way_max = 1024;

    class handler final : public dibs::acquire_handler {
      public:
        handler(keeper& to, std::size_t at) : to_(to), at_(at) {}
        void complete(std::error_code, std::optional<dibs::lease> granted) override {
            if (granted) {
                to_.leases_[at_] = std::move(*granted);
            }
            to_.room_.release();
        }

      private:
        keeper& to_;
        std::size_t at_;
    };

    std::vector<dibs::lease> leases_;
    std::counting_semaphore<under_way_max> room_{under_way_max};
};

/// What it costs to hold so many for a while.
inline void hold_many(
    dibs::client& client,
    int number,
    int length,
    const std::function<void()>& at_start = [] {},
    const std::function<void()>& at_end = [] {}) {
    keeper kept;
    const auto start = std::chrono::steady_clock::now();
    kept.acquire_all(client, number);
    std::printf("acquired %zu of %d in %.2f s\n",
                kept.held(),
                number,
                seconds(std::chrono::steady_clock::now() - start).count());
    at_start();
    const auto before = client.stats();
    const auto cpu_before = cpu_used();
    const auto from = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(std::chrono::seconds{length});
    const auto cpu = cpu_used() - cpu_before;
    const seconds wall = std::chrono::steady_clock::now() - from;
    at_end();
    const auto after = client.stats();
    const auto renewals = after.renewed - before.renewed;
    std::printf(
        "%zu of %d leases held after %.0f s, ttl 30 s: %.2f %% of a core, %.0f renewals/s, %.2f us "
        "CPU each, lost %llu\n",
        kept.held(),
        number,
        wall.count(),
        100 * cpu.count() / wall.count(),
        static_cast<double>(renewals) / wall.count(),
        1e6 * cpu.count() / static_cast<double>(std::max<std::uint64_t>(renewals, 1)),
        static_cast<unsigned long long>(after.lost));
}

}  // namespace dibs::bench
