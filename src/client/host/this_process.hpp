// SPDX-License-Identifier: Apache-2.0
#pragma once
// What others are told about this process when they find a key held.

#include "core/verbs.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace dibs::detail {

/// `command` empty: this process's command line.
[[nodiscard]] core::party this_process(std::string command);

/// A command line with what looks like a secret blanked (core/redaction.hpp).
[[nodiscard]] std::string blanked(std::string_view command);

/// The same for a command line whose words are known.
[[nodiscard]] std::string blanked(const std::vector<std::string>& words);

}  // namespace dibs::detail
