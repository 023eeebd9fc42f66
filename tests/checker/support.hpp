// SPDX-License-Identifier: Apache-2.0
#pragma once
// Histories for the tests: from text, from the folder of examples, and made up.

#include "checker/checks/checks.hpp"
#include "checker/reader.hpp"

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace dibs_checker::testing {

[[nodiscard]] history read(const std::string& text);

/// All checks.
[[nodiscard]] std::vector<verdict> judged(const history& of, limits bounds = {});
[[nodiscard]] const verdict& of(const std::vector<verdict>& found, check_id which);

/// Names of the checks with this outcome.
[[nodiscard]] std::set<std::string> with_outcome(const std::vector<verdict>& found, outcome what);
/// What the violations say, for messages of failed tests.
[[nodiscard]] std::string told(const std::vector<verdict>& found);

/// The files of tests/data/histories/KIND.
[[nodiscard]] std::vector<std::filesystem::path> files(const std::string& kind);
[[nodiscard]] std::string text_of(const std::filesystem::path& file);
/// "C1_C7_brought_back.jsonl": C1 and C7.
[[nodiscard]] std::set<std::string> checks_named_by(const std::filesystem::path& file);

/// A history as a correct store and correct clients would have made it: several processes with
/// clocks of their own take turns on several keys, write behind the fence, are paused and killed.
/// At least `events` long, complete, with all bounds in its plan.
[[nodiscard]] std::string sound_history(std::uint64_t seed, std::size_t events);

}  // namespace dibs_checker::testing
