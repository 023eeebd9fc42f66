// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pauses between attempts: each twice as long as the one before, up to a limit, and of a random
// length below that, so that those who met once do not meet again.

#include <dibs/error.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <random>
#include <stop_token>

namespace dibs::guard {

class patience {
  public:
    using milliseconds = std::chrono::milliseconds;

    patience(milliseconds first, milliseconds longest, milliseconds in_all)
        : next_(std::max(first, milliseconds{1})),
          longest_(std::max(longest, next_)),
          end_(std::chrono::steady_clock::now() + std::min(in_all, longest_in_all)) {}

    [[nodiscard]] milliseconds left() const {
        return std::max(
            milliseconds{0},
            std::chrono::duration_cast<milliseconds>(end_ - std::chrono::steady_clock::now()));
    }
    /// False: the time is over. Errors: `cancelled`.
    [[nodiscard]] bool pause(const std::stop_token& stop) {
        std::uniform_int_distribution<milliseconds::rep> length(next_.count() / 2, next_.count());
        const auto until = std::chrono::steady_clock::now() + milliseconds{length(random_)};
        next_ = std::min(next_ * 2, longest_);
        std::mutex alone;
        std::unique_lock hold(alone);
        std::condition_variable_any asked;
        (void)asked.wait_until(hold, stop, std::min(until, end_), [] { return false; });
        if (stop.stop_requested()) {
            throw error(make_error_code(errc::cancelled), "asked to stop");
        }
        return std::chrono::steady_clock::now() < end_;
    }

  private:
    /// Ten years: what is added to the clock must not overflow it.
    static constexpr milliseconds longest_in_all = std::chrono::hours{24 * 3650};

    milliseconds next_;
    milliseconds longest_;
    std::chrono::steady_clock::time_point end_;
    std::minstd_rand random_{std::random_device{}()};
};

}  // namespace dibs::guard
