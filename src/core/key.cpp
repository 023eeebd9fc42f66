// SPDX-License-Identifier: Apache-2.0
#include "core/key.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <span>

namespace dibs::core {

namespace {

/// Of a key that nobody can see.
constexpr std::size_t shown_bytes_max = 16;

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

/// The code point of one valid UTF-8 character.
char32_t code_point(std::string_view character) noexcept {
    const auto bits = [&](std::size_t index) {
        return static_cast<char32_t>(static_cast<std::uint8_t>(character[index]) & 0x3FU);
    };
    const auto lead = static_cast<char32_t>(static_cast<std::uint8_t>(character[0]));
    switch (character.size()) {
        case 2:
            return (lead & 0x1FU) << 6U | bits(1);
        case 3:
            return (lead & 0x0FU) << 12U | bits(1) << 6U | bits(2);
        case 4:
            return (lead & 0x07U) << 18U | bits(1) << 12U | bits(2) << 6U | bits(3);
        default:
            return lead;
    }
}

struct range {
    char32_t first;
    char32_t last;
};

bool within(std::span<const range> ranges, char32_t point) noexcept {
    return std::any_of(ranges.begin(), ranges.end(), [&](const range& one) {
        return one.first <= point && point <= one.last;
    });
}

/// What leaves no mark where it stands: blanks of every width, joiners, marks of direction, fillers
/// and selectors (Unicode 15: White_Space, Default_Ignorable_Code_Point and U+2800).
constexpr range invisible[] = {
    {0x20, 0x20},       {0xA0, 0xA0},      {0xAD, 0xAD},     {0x34F, 0x34F},   {0x61C, 0x61C},
    {0x115F, 0x1160},   {0x1680, 0x1680},  {0x17B4, 0x17B5}, {0x180B, 0x180F}, {0x2000, 0x200F},
    {0x2028, 0x202F},   {0x205F, 0x206F},  {0x2800, 0x2800}, {0x3000, 0x3000}, {0x3164, 0x3164},
    {0xFE00, 0xFE0F},   {0xFEFF, 0xFEFF},  {0xFFA0, 0xFFA0}, {0xFFF0, 0xFFF8}, {0x1BCA0, 0x1BCA3},
    {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF}};

/// What moves the text around it, or breaks the line, so that a listing shows something else than
/// what is there.
constexpr range rearranging[] = {{0x61C, 0x61C},
                                 {0x200E, 0x200F},
                                 {0x2028, 0x202E},
                                 {0x2066, 0x2069}};

std::string escaped(std::string_view bytes) {
    std::string shown;
    std::array<char, 5> escape{};
    for (const char byte : bytes) {
        std::snprintf(escape.data(),
                      escape.size(),
                      "\\x%02x",
                      static_cast<unsigned>(static_cast<std::uint8_t>(byte)));
        shown += escape.data();
    }
    return shown;
}

/// Letters, digits and signs that everybody sees: what most keys are made of.
bool plain(std::string_view key) noexcept {
    return std::all_of(key.begin(), key.end(), [](char one) { return one > ' ' && one < '\x7F'; });
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
    if (plain(key)) {
        return {};
    }
    bool blank = true;
    bool unseen = true;
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
        unseen = unseen && within(invisible, code_point(character));
        at += length;
    }
    if (blank) {
        return "the key is blank";
    }
    return unseen ? "the key has no visible character (" + escaped(key.substr(0, shown_bytes_max)) +
                        ")"
                  : "";
}

std::string printable(std::string_view text, std::size_t bytes_max) {
    std::string shown;
    for (std::size_t at = 0; at < text.size();) {
        if (shown.size() >= bytes_max) {
            return shown + "…";
        }
        const auto length = utf8_length(text.substr(at));
        const auto character = text.substr(at, length == 0 ? 1 : length);
        if (length == 0 || is_control(character) || within(rearranging, code_point(character))) {
            shown += escaped(character);
            at += character.size();
        } else {
            shown += text.substr(at, length);
            at += length;
        }
    }
    return shown;
}

}  // namespace dibs::core
