// SPDX-License-Identifier: Apache-2.0
// SHA-256 against the examples of its standard, and against lengths at which its padding changes.
#include "core/sha256.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace dibs::core {
namespace {

TEST(Sha256, GivesTheDigestsOfTheStandard) {
    EXPECT_EQ(sha256_of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(sha256_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(sha256_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    EXPECT_EQ(sha256_of(std::string(1'000'000, 'a')),
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, TellsLengthsApartWhereItsPaddingChanges) {
    std::set<std::string> seen;
    for (std::size_t length = 0; length <= 130; ++length) {
        EXPECT_TRUE(seen.insert(sha256_of(std::string(length, '\0'))).second) << length;
    }
}

}  // namespace
}  // namespace dibs::core
