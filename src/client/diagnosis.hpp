// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the store behind a client says about its health.

#include "store/finding.hpp"

#include <dibs/client.hpp>

#include <string_view>
#include <vector>

namespace dibs::detail {

/// Blocks for as long as the store's disk takes. Empty: this kind of store has nothing to tell.
[[nodiscard]] std::vector<store::finding> diagnose(client& of);

/// What can be told of a place where nobody has made a store yet, which none is made by. Empty: there
/// is one, or it takes opening it. Blocks as opening does.
[[nodiscard]] std::vector<store::finding> survey(std::string_view url);

}  // namespace dibs::detail
