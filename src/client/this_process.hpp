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

/// Text with what looks like a secret replaced by ***: the password of a URL, the value of an
/// option or assignment whose name speaks of a password, secret, token, credential or key.
[[nodiscard]] std::string blanked(std::string_view command);

/// The same for a command line whose words are known.
[[nodiscard]] std::string blanked(const std::vector<std::string>& words);

}  // namespace dibs::detail
