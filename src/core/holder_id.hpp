// SPDX-License-Identifier: Apache-2.0
#pragma once
// The unguessable name of one party that asks for a lease: 128 random bits, new for every acquire
// call and kept for all of its retries. Every change to a lease in a store compares it.

#include "core/environment.hpp"

#include <array>
#include <compare>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace dibs::core {

struct holder_id {
    std::array<std::byte, 16> bytes{};

    friend bool operator==(const holder_id& left, const holder_id& right) noexcept {
        return std::memcmp(left.bytes.data(), right.bytes.data(), sizeof left.bytes) == 0;
    }
    friend auto operator<=>(const holder_id&, const holder_id&) = default;

    [[nodiscard]] bool empty() const noexcept { return *this == holder_id{}; }

    /// 32 lower-case hexadecimal digits.
    [[nodiscard]] std::string text() const;
    [[nodiscard]] static std::optional<holder_id> parse(std::string_view text) noexcept;

    /// Never empty.
    [[nodiscard]] static holder_id draw(entropy& random);
};

}  // namespace dibs::core
