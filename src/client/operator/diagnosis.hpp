// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the store behind a client says about its health.

#include "store/finding.hpp"

#include <dibs/client.hpp>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace dibs::detail {

/// Blocks for as long as the store's disk takes. Empty: this kind of store has nothing to tell.
[[nodiscard]] std::vector<store::finding> diagnose(client& of);

/// How many late writes and claims were refused under the key by what guards the data in the same
/// database: never too few. Empty: there is nothing of the kind. Blocks as `diagnose`.
[[nodiscard]] std::optional<std::uint64_t> refused_writes(client& of, std::string_view key);

/// What can be told of a place where nobody has made a store yet, which none is made by. Empty: there
/// is one, or it takes opening it. Blocks as opening does.
[[nodiscard]] std::vector<store::finding> survey(std::string_view url);

}  // namespace dibs::detail
