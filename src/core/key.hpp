// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which names a key may have. One rule for every store, so that a name never means one thing here
// and another there.

#include <string>
#include <string_view>
#include <system_error>

namespace dibs::core {

inline constexpr std::size_t key_bytes_max = 1024;

/// Empty when the key is fine; else what is wrong with it, for people ("the key is empty").
[[nodiscard]] std::string fault_of_key(std::string_view key);

/// A key as it may be printed: shown as \xNN are control characters, broken UTF-8, and what moves
/// the text around it (marks of direction, line separators). Cut to a readable length.
[[nodiscard]] std::string printable(std::string_view text, std::size_t bytes_max = 200);

}  // namespace dibs::core
