// SPDX-License-Identifier: Apache-2.0
#pragma once
// What no store carries out, whatever is on the record.

#include "core/verbs.hpp"

#include <string_view>

namespace dibs::core {

/// Empty when the verb makes sense. The client refuses these earlier and in better words; in a store a
/// zero must not become a grant that nobody can hold. The key is not looked at.
[[nodiscard]] std::string_view fault_of(const verb& what) noexcept;

}  // namespace dibs::core
