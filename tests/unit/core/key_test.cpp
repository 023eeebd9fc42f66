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
                           "a\u00a0b"sv,
                           "\u200dx"sv,
                           "می\u200cخواهم"sv,
                           "👩\u200d💻"sv,
                           "a\u202eb"sv,
                           "\U0010FFFF"sv}) {
        EXPECT_TRUE(fine(key)) << key;
    }
}

TEST(Key, IsNeitherEmptyNorBlank) {
    EXPECT_FALSE(fine(""));
    EXPECT_FALSE(fine(" "));
    EXPECT_FALSE(fine("    "));
}

TEST(Key, HasACharacterThatCanBeSeen) {
    for (const auto key :
         {"\u00a0"sv, "\u00ad"sv,       "\u115f"sv,       "\u1680"sv,     "\u180e"sv,
          "\u2003"sv, "\u200b"sv,       "\u200d\u200c"sv, "\u202e"sv,     "\u2028"sv,
          "\u2060"sv, "\u2066\u2069"sv, "\u2800"sv,       "\u3000"sv,     "\u3164"sv,
          "\ufe0f"sv, "\ufeff"sv,       "\uffa0"sv,       "\U000E0061"sv, " \u200b "sv}) {
        EXPECT_NE(fault_of_key(key).find("no visible character"), std::string::npos)
            << fault_of_key(key);
        EXPECT_TRUE(fine(std::string{key} + "a"));
    }
    EXPECT_NE(fault_of_key("\u200b").find("\\xe2\\x80\\x8b"), std::string::npos) << "says which";
    std::string many;
    for (int at = 0; at < 300; ++at) {
        many += "\u200b";
    }
    EXPECT_LT(fault_of_key(many).size(), 200U);
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
    EXPECT_EQ(printable("a\u202eb"), "a\\xe2\\x80\\xaeb") << "what follows would be shown reversed";
    EXPECT_EQ(printable("a\u2028b"), "a\\xe2\\x80\\xa8b") << "a line of its own";
    EXPECT_EQ(printable("\u2066a\u2069\u200f\u061c"),
              "\\xe2\\x81\\xa6a\\xe2\\x81\\xa9\\xe2\\x80\\x8f\\xd8\\x9c");
    EXPECT_EQ(printable("👩\u200d💻"), "👩\u200d💻") << "joined characters are one";
    EXPECT_EQ(printable("abcdef", 3), "abc…");
    EXPECT_EQ(printable("abc", 3), "abc");
}

RC_GTEST_PROP(KeyProperty, WhatIsShownIsAlwaysHarmless, (const std::string& text)) {
    const auto shown = printable(text);
    RC_ASSERT(std::none_of(shown.begin(), shown.end(), [](char one) {
        return static_cast<unsigned char>(one) < 0x20 || one == 0x7F;
    }));
    // What nobody can see is shown as it is, unless it moves something.
    RC_ASSERT(shown.empty() || fine("a" + shown));
}

}  // namespace dibs::core
