// SPDX-License-Identifier: Apache-2.0
#pragma once
// How times and names read in an explanation.

#include "checker/history.hpp"

#include <cstdint>
#include <string>

namespace dibs_checker {

/// "1.5 s", "20.25 ms", "3 µs", "17 ns": exact, in the unit that suits its size.
[[nodiscard]] std::string time_text(std::int64_t ns);
/// "at 1.5 s"
[[nodiscard]] std::string at_text(std::int64_t sim_ns);
/// A text of the history in quotation marks, control characters as \xNN.
[[nodiscard]] std::string quoted(const std::string& text);
[[nodiscard]] std::string name_in(const history& of, text_id id);
/// `process "A"`
[[nodiscard]] std::string process_in(const history& of, text_id id);

}  // namespace dibs_checker
