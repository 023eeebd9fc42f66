// SPDX-License-Identifier: Apache-2.0
#pragma once
// A world for stores with threads of their own: tasks and timers run on the thread of the test,
// while it waits for a condition; the clock is the real one. Thread safety: tasks may be posted
// from any thread, the rest is the test's.

#include "core/environment.hpp"
#include "support/manual_executor.hpp"
#include "support/seeded_entropy.hpp"
#include "support/timer_queue.hpp"
#include "support/virtual_environment.hpp"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

namespace dibs::testing {

class boot_time final : public core::time_source {
  public:
    [[nodiscard]] core::instant now() const noexcept override {
        timespec at{};
        ::clock_gettime(CLOCK_BOOTTIME, &at);
        return core::instant{std::chrono::seconds{at.tv_sec} + core::nanoseconds{at.tv_nsec}};
    }
    void arm(core::timer& alarm, core::instant due) override { queue_.arm(*this, alarm, due); }
    void disarm(core::timer& alarm) noexcept override { queue_.disarm(alarm); }

  private:
    friend class pumped_environment;
    timer_queue queue_;
};

class pumped_environment {
  public:
    explicit pumped_environment(std::uint64_t seed = 1) : random_{seed}, notices_{exec_} {}

    [[nodiscard]] core::environment view() noexcept { return {exec_, time_, random_, notices_}; }
    [[nodiscard]] manual_executor& exec() noexcept { return exec_; }
    [[nodiscard]] core::instant now() const noexcept { return time_.now(); }

    /// Runs tasks and timers until `told` holds, for at most `longest` of real time. Returns
    /// whether it does.
    bool run_until(const std::function<bool()>& told,
                   core::nanoseconds longest = std::chrono::seconds{20}) {
        const auto end = time_.now() + longest;
        for (;;) {
            if (told()) {
                return true;
            }
            if (exec_.run_one() || time_.queue_.fire_one(time_.now())) {
                continue;
            }
            const auto now = time_.now();
            if (now >= end) {
                return false;
            }
            const auto next = std::min(end, time_.queue_.next_due().value_or(end));
            exec_.wait_for_task(std::max(next - now, core::nanoseconds{0}));
        }
    }

  private:
    manual_executor exec_;
    boot_time time_;
    seeded_entropy random_;
    posting_notifier notices_;
};

}  // namespace dibs::testing
