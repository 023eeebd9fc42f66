// SPDX-License-Identifier: Apache-2.0
// Keys from parts: readable, valid, and one for each list of parts.
#include "core/key.hpp"

#include <dibs/key.hpp>

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace dibs {
namespace {

TEST(KeyFrom, OrdinaryPartsStayReadable) {
    EXPECT_EQ(key_from({"oauth", "acme", "crm-2", "user/7"}), "oauth:acme:crm-2:user/7");
    EXPECT_EQ(key_from({"größe"}), "größe");
}

TEST(KeyFrom, DifferentPartsNeverMeet) {
    const std::string nul("a\0b", 3);
    const std::string broken("\xff\xfe");
    const std::string long_one(3000, 'x');
    const std::string long_other(2999, 'x');
    const std::vector<std::string> keys{key_from({"a", "bc"}),     key_from({"ab", "c"}),
                                        key_from({"a:bc"}),        key_from({"a", "b", "c"}),
                                        key_from({"a", "", "bc"}), key_from({"", "a", "bc"}),
                                        key_from({"a", "bc", ""}), key_from({""}),
                                        key_from({"%"}),           key_from({"%25"}),
                                        key_from({"", ""}),        key_from({nul}),
                                        key_from({"a%00b"}),       key_from({broken}),
                                        key_from({"%FF%FE"}),      key_from({long_one}),
                                        key_from({long_other}),    key_from({long_one, "a"}),
                                        key_from({"{a}", "bc"}),   key_from({"a bc"})};
    EXPECT_EQ(std::set<std::string>(keys.begin(), keys.end()).size(), keys.size());
    for (const auto& key : keys) {
        EXPECT_EQ(core::fault_of_key(key), "") << key;
        EXPECT_EQ(key.find_first_of("{} @"), std::string::npos) << key;
    }
}

TEST(KeyFrom, LongOnesOfSeveralBytesPerCharacterAreCutBetweenThem) {
    for (std::size_t shift = 0; shift < 4; ++shift) {
        std::string part(shift, 'x');
        for (int at = 0; at < 400; ++at) {
            part += "€";
        }
        EXPECT_EQ(core::fault_of_key(key_from({part})), "") << shift;
    }
}

TEST(KeyFrom, ASetIsTheSameInAnyOrder) {
    EXPECT_EQ(set_part("read write"), set_part("  write read write "));
    EXPECT_NE(set_part("read write"), set_part("readwrite"));
    EXPECT_EQ(set_part(""), "");
    EXPECT_EQ(key_from({"oauth", set_part("b a")}), "oauth:a%20b");
}

TEST(KeyFrom, ASetMayBeAListOfWords) {
    // Two literals in braces are no pair of iterators into one text.
    EXPECT_EQ(set_part({"read", "write"}), "read write");
    EXPECT_EQ(set_part({"write", "read write", ""}), "read write");
    EXPECT_EQ(set_part(std::vector<std::string>{"b", "c", "a"}), "a b c");
    EXPECT_EQ(set_part({"read"}), "read");
    EXPECT_EQ(set_part({}), "");
}

}  // namespace
}  // namespace dibs
