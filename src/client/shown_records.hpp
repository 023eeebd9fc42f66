// SPDX-License-Identifier: Apache-2.0
#pragma once
// From the core's words to the public ones.

#include "core/verbs.hpp"

#include <dibs/info.hpp>

#include <vector>

namespace dibs::detail {

[[nodiscard]] std::vector<holder> shown(std::vector<core::holder_info> holders);
[[nodiscard]] record shown(core::record_info record);

}  // namespace dibs::detail
