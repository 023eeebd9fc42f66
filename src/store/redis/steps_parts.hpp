// SPDX-License-Identifier: Apache-2.0
#pragma once
// What both sides of a call of batch.lua know of its entries. For steps_asked and steps_answered alone.

#include "core/verbs.hpp"

#include <cstdint>
#include <variant>

namespace dibs::store::redis {

/// A duration that is longer than any clock will show is for ever.
inline constexpr std::int64_t duration_max = std::int64_t{1} << 51U;

[[nodiscard]] inline bool is_acquire(const core::entry& one) noexcept {
    return std::holds_alternative<core::acquire>(one.what);
}

[[nodiscard]] inline bool is_plain_release(const core::verb& what) noexcept {
    const auto* asked = std::get_if<core::release>(&what);
    return asked != nullptr && !asked->result;
}

}  // namespace dibs::store::redis
