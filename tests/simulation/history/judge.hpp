// SPDX-License-Identifier: Apache-2.0
#pragma once
// Gives a history to the checker and brings back what it says.

#include <cstdint>
#include <string>
#include <vector>

namespace dibs::simulation {

struct judgement {
    std::vector<std::string> violations;  ///< also: a search that was not finished
    std::uint64_t excused = 0;
    std::uint64_t judged = 0;  ///< things that were looked at
};

[[nodiscard]] judgement judge(const std::string& history);

/// All that the checker has to say, with excerpts.
[[nodiscard]] std::string report(const std::string& history);

/// A page that shows the run.
[[nodiscard]] std::string picture(const std::string& history);

/// One line of text per event.
[[nodiscard]] std::string in_words(const std::string& history);

}  // namespace dibs::simulation
