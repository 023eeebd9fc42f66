// SPDX-License-Identifier: Apache-2.0
#pragma once
// SHA-256, for telling one payload from another without keeping it. Not for secrets: it takes as long as the text is.
//
// Source: FIPS 180-4, sections 5 and 6.2.

#include <string>
#include <string_view>

namespace dibs::core {

/// 64 hexadecimal digits.
[[nodiscard]] std::string sha256_of(std::string_view bytes);

}  // namespace dibs::core
