// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace dibs::store::remote {

/// Which requests go first: renewals before others before looks.
enum class urgency : std::uint8_t { renewal, other, look };
inline constexpr std::size_t urgencies = 3;

}  // namespace dibs::store::remote
