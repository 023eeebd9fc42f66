// SPDX-License-Identifier: Apache-2.0
// What it costs to hold many leases: CPU of the process while a client holds and renews them, as a
// share of one core, beside one UPDATE of as many rows by hand.
//
// usage: bench_sqlite_renewals [leases] [seconds]

#include "measure.hpp"

#include <dibs/async.hpp>
#include <dibs/dibs.hpp>

#include <atomic>
#include <cstdio>
#include <semaphore>
#include <string>
#include <thread>

namespace {

using namespace std::chrono_literals;

/// Acquires many keys at once and keeps the leases.
class keeper {
  public:
    void acquire_all(dibs::client& client, int number) {
        leases_.resize(static_cast<std::size_t>(number));
        for (int at = 0; at < number; ++at) {
            room_.acquire();
            dibs::start_acquire(client,
                                "lease-" + std::to_string(at),
                                {.ttl = 30s, .timeout = 30s},
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

}  // namespace

int main(int count, char** words) {
    const int number = count > 1 ? std::atoi(words[1]) : 100'000;
    const int length = count > 2 ? std::atoi(words[2]) : 60;
    const dibs::bench::scratch_folder folder;
    dibs::client client("sqlite:" + folder.file("renewals.db"));
    keeper kept;
    const auto start = std::chrono::steady_clock::now();
    kept.acquire_all(client, number);
    std::printf("acquired %zu of %d in %.2f s\n",
                kept.held(),
                number,
                dibs::bench::seconds(std::chrono::steady_clock::now() - start).count());
    const auto before = client.stats();
    const auto cpu_before = dibs::bench::cpu_used();
    const auto from = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(std::chrono::seconds{length});
    const auto cpu = dibs::bench::cpu_used() - cpu_before;
    const dibs::bench::seconds wall = std::chrono::steady_clock::now() - from;
    const auto after = client.stats();
    const auto renewals = after.renewed - before.renewed;
    std::printf(
        "%zu of %d leases held after %.0f s, ttl 30 s: %.2f %% of a core, %.0f renewals/s, %.2f us "
        "CPU each, "
        "lost %llu\n",
        kept.held(),
        number,
        wall.count(),
        100 * cpu.count() / wall.count(),
        static_cast<double>(renewals) / wall.count(),
        1e6 * cpu.count() / static_cast<double>(std::max<std::uint64_t>(renewals, 1)),
        static_cast<unsigned long long>(after.lost));
}
