// SPDX-License-Identifier: Apache-2.0
#pragma once
// One run of the simulator, from its plan to its verdict.

#include "simulation/history/recorder.hpp"
#include "simulation/run/plan.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace dibs::simulation {

struct outcome {
    std::vector<std::string> violations;
    written_history history;
    std::uint64_t steps = 0;
    std::uint64_t operations = 0;  ///< acquires, renewals and releases that were answered
    std::uint64_t grants = 0;
    std::uint64_t excused = 0;  ///< breaches that an unbounded fault explains
    std::uint64_t lost_updates = 0;
    /// By how much more often than the least lucky the luckiest of a queue got its key.
    std::uint64_t unfairness = 0;
};

/// The run alone, under the two cheap laws.
[[nodiscard]] outcome run(const plan& drawn);

/// Adds what the checker finds in its history.
void judge(outcome& of);

[[nodiscard]] inline outcome judged_run(const plan& drawn) {
    auto told = run(drawn);
    judge(told);
    return told;
}

}  // namespace dibs::simulation
