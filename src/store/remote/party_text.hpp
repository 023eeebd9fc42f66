// SPDX-License-Identifier: Apache-2.0
#pragma once
// Who is behind a process, as one text without a meaning to the server.

#include "core/verbs.hpp"

#include <string>
#include <string_view>

namespace dibs::store::remote {

[[nodiscard]] std::string text_of(const core::party& who);
/// What cannot be read is left out.
[[nodiscard]] core::party party_of(std::string_view text);

}  // namespace dibs::store::remote
