// SPDX-License-Identifier: Apache-2.0
#pragma once
// Keys on which many wait, for `dibs doctor`: one key for everything is the usual mistake.

#include "client/operator/diagnosis.hpp"

#include <dibs/client.hpp>

#include <cstddef>
#include <vector>

namespace dibs::cli {

/// So many that wait for one key are told.
inline constexpr std::size_t crowd_min = 10;

/// One finding per crowded key, the most crowded first, up to ten; one that says so when there is none. Errors: failure.
[[nodiscard]] std::vector<store::finding> crowded_keys(client& through);

}  // namespace dibs::cli
