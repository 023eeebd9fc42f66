// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the data layer (`dibs guard install`) tells of itself, where it is in the store's schema. It is
// called by name alone: nothing of it is known here.

#include "store/finding.hpp"
#include "store/postgres/address.hpp"
#include "store/postgres/inquiry.hpp"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace dibs::store::postgres {

/// What is protected, what was refused, and where it is open all the same. Empty: there is none.
[[nodiscard]] std::vector<finding> findings_of_data_layer(const asking& ask, const address& where);

/// How many late writes and claims it refused under a key: never too few. Empty: there is none that
/// counts them, or it could not be asked.
[[nodiscard]] std::optional<std::uint64_t> refused_by_data_layer(const asking& ask,
                                                                 const address& where,
                                                                 std::string_view key);

}  // namespace dibs::store::postgres
