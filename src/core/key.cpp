// SPDX-License-Identifier: Apache-2.0
#include "core/key.hpp"

#include <array>
#include <cstdint>
#include <cstdio>

namespace dibs::core {

namespace {

/// How many bytes the UTF-8 character at the start of `text` has; 0 when it is not UTF-8 (RFC 3629:
/// no overlong forms, no surrogates, nothing above U+10FFFF).
std::size_t utf8_length(std::string_view text) noexcept {
    const auto byte = [&](std::size_t index) {
        return index < text.size() ? static_cast<std::uint8_t>(text[index]) : std::uint8_t{0};
    };
    const auto follows = [&](std::size_t index, std::uint8_t low = 0x80, std::uint8_t high = 0xBF) {
        return byte(index) >= low && byte(index) <= high;
    };
    const auto lead = byte(0);
    if (lead < 0x80) {
        return 1;
    }
    if (lead >= 0xC2 && lead <= 0xDF) {
        return follows(1) ? 2 : 0;
    }
    if (lead >= 0xE0 && lead <= 0xEF) {
        const std::uint8_t low = lead == 0xE0 ? 0xA0 : 0x80;
        const std::uint8_t high = lead == 0xED ? 0x9F : 0xBF;
        return follows(1, low, high) && follows(2) ? 3 : 0;
    }
    if (lead >= 0xF0 && lead <= 0xF4) {
        const std::uint8_t low = lead == 0xF0 ? 0x90 : 0x80;
        const std::uint8_t high = lead == 0xF4 ? 0x8F : 0xBF;
        return follows(1, low, high) && follows(2) && follows(3) ? 4 : 0;
    }
    return 0;
}

bool is_control(std::string_view character) noexcept {
    const auto lead = static_cast<std::uint8_t>(character[0]);
    const bool c0 = character.size() == 1 && (lead < 0x20 || lead == 0x7F);
    const bool c1 =
        character.size() == 2 && lead == 0xC2 && static_cast<std::uint8_t>(character[1]) < 0xA0;
    return c0 || c1;
}

}  // namespace

std::string fault_of_key(std::string_view key) {
    if (key.empty()) {
        return "the key is empty";
    }
    if (key.size() > key_bytes_max) {
        return "the key has " + std::to_string(key.size()) + " bytes; at most " +
               std::to_string(key_bytes_max) + " are allowed";
    }
    bool blank = true;
    for (std::size_t at = 0; at < key.size();) {
        const auto length = utf8_length(key.substr(at));
        if (length == 0) {
            return "the key is not valid UTF-8 (byte " + std::to_string(at + 1) + ")";
        }
        const auto character = key.substr(at, length);
        if (is_control(character)) {
            return "the key holds a control character (byte " + std::to_string(at + 1) + ")";
        }
        blank = blank && character == " ";
        at += length;
    }
    return blank ? "the key is blank" : "";
}

std::string printable(std::string_view text, std::size_t bytes_max) {
    std::string shown;
    for (std::size_t at = 0; at < text.size();) {
        if (shown.size() >= bytes_max) {
            return shown + "…";
        }
        const auto length = utf8_length(text.substr(at));
        if (length == 0 || is_control(text.substr(at, length))) {
            std::array<char, 5> escape{};
            const auto bytes = length == 0 ? 1 : length;
            for (std::size_t offset = 0; offset < bytes; ++offset) {
                std::snprintf(escape.data(),
                              escape.size(),
                              "\\x%02x",
                              static_cast<unsigned>(static_cast<std::uint8_t>(text[at + offset])));
                shown += escape.data();
            }
            at += bytes;
        } else {
            shown += text.substr(at, length);
            at += length;
        }
    }
    return shown;
}

}  // namespace dibs::core
