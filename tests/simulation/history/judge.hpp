// SPDX-License-Identifier: Apache-2.0
#pragma once
// Gives a history to the checker and brings back what it says.

#include "simulation/history/recorder.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace dibs::simulation {

struct judgement {
    std::vector<std::string> violations;  ///< also: a search that was not finished
    std::uint64_t excused = 0;
    std::uint64_t judged = 0;  ///< things that were looked at
};

[[nodiscard]] judgement judge(const written_history& of);

/// All that the checker has to say, with excerpts.
[[nodiscard]] std::string report(const written_history& of);

/// The same of a history that is read from its text.
[[nodiscard]] std::string report_of_text(const std::string& lines);

/// A page that shows the run.
[[nodiscard]] std::string picture(const written_history& of);

/// One line of text per event.
[[nodiscard]] std::string in_words(const written_history& of);

}  // namespace dibs::simulation
