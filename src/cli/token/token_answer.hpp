// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the command that fetches a token has answered: the JSON of a token endpoint (RFC 6749 5.1, 5.2), or plain text.

#include "cli/capture/captured_command.hpp"
#include "recipes/cached/cached_value.hpp"

#include <chrono>
#include <optional>

namespace dibs::cli {

/// `life`: of a value whose answer does not tell; empty: such an answer is a failure. Never throws.
[[nodiscard]] recipes::fetched answer_of(const captured_run& run,
                                         std::optional<std::chrono::milliseconds> life);

}  // namespace dibs::cli
