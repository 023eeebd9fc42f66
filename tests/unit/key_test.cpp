// SPDX-License-Identifier: Apache-2.0
// Which names a key may have, and how any text is shown without harm to a terminal.

#include "core/key.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace dibs::core {

namespace {

using namespace std::string_view_literals;

bool fine(std::string_view key) {
    return fault_of_key(key).empty();
}

}  // namespace

TEST(Key, MayBeAnyTextThatCanBePrinted) {
    for (const auto key : {"a"sv,
                           "invoice:42"sv,
                           "a b"sv,
                           " a"sv,
                           "100%"sv,
                           "it's \"quoted\""sv,
                           "a\\b"sv,
                           "größe"sv,
                           "日本"sv,
                           "🔒"sv,
                           "-v"sv,
                           "\u00a0"sv,
                           "\U0010FFFF"sv}) {
        EXPECT_TRUE(fine(key)) << key;
    }
}

TEST(Key, IsNeitherEmptyNorBlank) {
    EXPECT_FALSE(fine(""));
    EXPECT_FALSE(fine(" "));
    EXPECT_FALSE(fine("    "));
}

TEST(Key, HasAtMost1024Bytes) {
    EXPECT_TRUE(fine(std::string(1024, 'k')));
    EXPECT_FALSE(fine(std::string(1025, 'k')));
    EXPECT_NE(fault_of_key(std::string(1025, 'k')).find("1025"), std::string::npos);
    std::string many_bytes;
    for (int at = 0; at < 513; ++at) {
        many_bytes += "ä";
    }
    EXPECT_FALSE(fine(many_bytes)) << "513 characters, but 1026 bytes";
}

TEST(Key, HoldsNoControlCharacter) {
    for (int byte = 0; byte < 0x20; ++byte) {
        EXPECT_FALSE(fine(std::string{"a"} + static_cast<char>(byte))) << byte;
    }
    EXPECT_FALSE(fine("a\x7F"));
    EXPECT_FALSE(fine("a\xC2\x80")) << "C1";
    EXPECT_FALSE(fine("a\xC2\x9F")) << "C1";
    EXPECT_FALSE(fine("a\0b"sv)) << "never cut short at a NUL";
}

TEST(Key, IsUtf8AndNothingLikeIt) {
    for (const auto key : {"\x80"sv,
                           "a\xC3"sv,
                           "\xC0\xAF"sv,
                           "\xC1\xBF"sv,
                           "\xE0\x80\xAF"sv,
                           "\xED\xA0\x80"sv,
                           "\xF0\x80\x80\xAF"sv,
                           "\xF4\x90\x80\x80"sv,
                           "\xF5\x80\x80\x80"sv,
                           "\xE2\x82"sv,
                           "\xFF"sv}) {
        EXPECT_FALSE(fine(key)) << printable(key);
    }
    EXPECT_NE(fault_of_key("ab\xFF").find("byte 3"), std::string::npos) << "says where";
}

TEST(Key, IsShownWithoutHarmToATerminal) {
    EXPECT_EQ(printable("größe"), "größe");
    EXPECT_EQ(printable("\x1B[2J"), "\\x1b[2J");
    EXPECT_EQ(printable("a\xFF"), "a\\xff");
    EXPECT_EQ(printable("a\xC2\x9B"), "a\\xc2\\x9b");
    EXPECT_EQ(printable("abcdef", 3), "abc…");
    EXPECT_EQ(printable("abc", 3), "abc");
}

RC_GTEST_PROP(KeyProperty, WhatIsShownIsAlwaysHarmless, (const std::string& text)) {
    const auto shown = printable(text);
    RC_ASSERT(std::none_of(shown.begin(), shown.end(), [](char one) {
        return static_cast<unsigned char>(one) < 0x20 || one == 0x7F;
    }));
    RC_ASSERT(shown.empty() || fine(shown) || shown.find_first_not_of(' ') == std::string::npos);
}

}  // namespace dibs::core
