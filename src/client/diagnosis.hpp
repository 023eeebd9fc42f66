// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the store behind a client says about its health.

#include "store/finding.hpp"

#include <dibs/client.hpp>

#include <vector>

namespace dibs::detail {

/// Blocks for as long as the store's disk takes. Empty: this kind of store has nothing to tell.
[[nodiscard]] std::vector<store::finding> diagnose(client& of);

}  // namespace dibs::detail
