// SPDX-License-Identifier: Apache-2.0
#pragma once
// A history on its way through the checks, with what several of them need of it.

#include "checker/beliefs.hpp"
#include "checker/check_id.hpp"
#include "checker/clock_map.hpp"
#include "checker/history.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace dibs_checker {

struct limits {
    /// How many steps the search of C4 may take for one key. Steps, not time: the same history gets
    /// the same verdict on every machine.
    std::uint64_t search_steps = 1'000'000;
};

class subject {
  public:
    explicit subject(const history& of, limits how_far = {});

    const history& all;
    const clock_map clocks;
    const std::vector<belief> beliefs;
    const limits bounds;

    /// Whether an unbounded fault before this event lifts what the check promises.
    [[nodiscard]] bool excuses(check_id which, position event_at) const noexcept {
        return first_excuse_[static_cast<std::size_t>(which)] < event_at;
    }
    /// That fault; nowhere when there is none.
    [[nodiscard]] position first_excuse(check_id which) const noexcept {
        return first_excuse_[static_cast<std::size_t>(which)];
    }

  private:
    std::array<position, check_count + 1> first_excuse_{};
};

}  // namespace dibs_checker
