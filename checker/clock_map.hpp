// SPDX-License-Identifier: Apache-2.0
#pragma once
// When, in true time, a process's or a store's clock showed something. It goes by the pairs of
// times that the history holds, with straight lines between them.

#include "checker/history.hpp"

#include <cstdint>
#include <limits>
#include <unordered_map>
#include <vector>

namespace dibs_checker {

inline constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

/// One clock.
class clock_line {
  public:
    void add(std::int64_t sim, std::int64_t shown);

    /// The first true time, at or after `from`, at which the clock showed `shown` or more. After
    /// the last pair it is taken to run true.
    [[nodiscard]] std::int64_t reaches(std::int64_t shown, std::int64_t from) const;

  private:
    struct pair {
        std::int64_t sim;
        std::int64_t shown;
    };
    [[nodiscard]] static std::int64_t between(const pair& low,
                                              const pair& high,
                                              std::int64_t shown);

    std::vector<pair> pairs_;
    std::vector<std::size_t> falls_;  ///< pairs that show less than the one before
};

class clock_map {
  public:
    explicit clock_map(const history& of);

    [[nodiscard]] std::int64_t of_process(text_id proc,
                                          std::int64_t local,
                                          std::int64_t from) const;
    [[nodiscard]] std::int64_t of_store(text_id store, std::int64_t shown, std::int64_t from) const;

  private:
    std::unordered_map<text_id, clock_line> processes_;
    std::unordered_map<text_id, clock_line> stores_;
};

}  // namespace dibs_checker
