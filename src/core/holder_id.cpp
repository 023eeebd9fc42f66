// SPDX-License-Identifier: Apache-2.0
#include "core/holder_id.hpp"

#include <cstdint>

namespace dibs::core {

std::string holder_id::text() const {
    static constexpr std::string_view digits = "0123456789abcdef";
    std::string shown;
    shown.reserve(2 * bytes.size());
    for (const auto byte : bytes) {
        const auto value = std::to_integer<std::uint8_t>(byte);
        shown += digits[value >> 4U];
        shown += digits[value & 0xFU];
    }
    return shown;
}

std::optional<holder_id> holder_id::parse(std::string_view text) noexcept {
    holder_id parsed;
    if (text.size() != 2 * parsed.bytes.size()) {
        return std::nullopt;
    }
    const auto value_of = [](char digit) -> int {
        if (digit >= '0' && digit <= '9') {
            return digit - '0';
        }
        return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
    };
    for (std::size_t at = 0; at < parsed.bytes.size(); ++at) {
        const int high = value_of(text[2 * at]);
        const int low = value_of(text[2 * at + 1]);
        if (high < 0 || low < 0) {
            return std::nullopt;
        }
        parsed.bytes[at] = static_cast<std::byte>(high * 16 + low);
    }
    return parsed.empty() ? std::nullopt : std::optional{parsed};
}

holder_id holder_id::draw(entropy& random) {
    holder_id drawn;
    while (drawn.empty()) {
        random.fill(drawn.bytes);
    }
    return drawn;
}

}  // namespace dibs::core
