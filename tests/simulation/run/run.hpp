// SPDX-License-Identifier: Apache-2.0
#pragma once
// One run of the simulator, from its plan to its verdict.

#include "simulation/run/plan.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace dibs::simulation {

struct outcome {
    std::vector<std::string> violations;
    std::string history;
    std::uint64_t digest = 0;  ///< of the history
    std::uint64_t steps = 0;
    std::uint64_t operations = 0;  ///< acquires, renewals and releases that were answered
    std::uint64_t grants = 0;
    std::uint64_t excused = 0;  ///< breaches that an unbounded fault explains
    std::uint64_t lost_updates = 0;
};

/// `judged`: the checker judges the history, too, not the two cheap laws alone.
[[nodiscard]] outcome run(const plan& drawn, bool judged = true);

}  // namespace dibs::simulation
