// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a verb brings for the store to keep: a result, a mark, the reason of a hold.

#include "core/verbs.hpp"

#include <string>

namespace dibs::core {

/// Null: nothing.
[[nodiscard]] const std::string* payload_of(const verb& what) noexcept;

}  // namespace dibs::core
