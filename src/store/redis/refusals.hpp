// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a server says instead of an answer, and what it means.

#include "core/verbs.hpp"

#include <string_view>

namespace dibs::store::redis {

/// The server's refusal of a whole call, or of one entry, as an answer. `wrote`: part of it may have
/// been written.
[[nodiscard]] core::answer answer_to_error(std::string_view text, bool wrote);

/// Of a whole call: whether it was refused before anything was executed.
[[nodiscard]] bool surely_not_executed(std::string_view text) noexcept;

}  // namespace dibs::store::redis
