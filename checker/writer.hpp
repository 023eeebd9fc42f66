// SPDX-License-Identifier: Apache-2.0
#pragma once
// From a history to JSON lines: what its lines said when it was read, or would have said.

#include "checker/history.hpp"

#include <string>

namespace dibs_checker {

/// From the event at `first` on, one line each.
[[nodiscard]] std::string lines_of(const history& all, position first = 0);

}  // namespace dibs_checker
