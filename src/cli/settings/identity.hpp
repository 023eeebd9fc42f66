// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether a holder is the one who asks.

#include <dibs/info.hpp>

#include <string_view>

namespace dibs::cli {

/// True when the key is held by a `dibs run` that this process runs under (its environment says
/// so), or by a process of this host that this one descends from.
[[nodiscard]] bool is_you(const dibs::holder& who, std::string_view key);

}  // namespace dibs::cli
