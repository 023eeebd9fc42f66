// SPDX-License-Identifier: Apache-2.0
// Holder ids: text and back, and drawn from all of the randomness that is offered.

#include "core/holder_id.hpp"

#include "support/seeded_entropy.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace dibs::core {

namespace {

/// Hands out zeros a few times before it comes to itself.
class sleepy_entropy final : public entropy {
  public:
    explicit sleepy_entropy(int zeros) : zeros_{zeros} {}
    void fill(std::span<std::byte> bytes) override {
        std::fill(bytes.begin(), bytes.end(), zeros_-- > 0 ? std::byte{0} : std::byte{7});
    }

  private:
    int zeros_;
};

}  // namespace

TEST(HolderId, IsThirtyTwoLowerCaseDigits) {
    holder_id id;
    id.bytes[0] = std::byte{0xAB};
    id.bytes[15] = std::byte{0x0F};
    EXPECT_EQ(id.text(), "ab00000000000000000000000000000f");
}

TEST(HolderId, ParsesNothingElse) {
    const std::string good = "ab00000000000000000000000000000f";
    EXPECT_TRUE(holder_id::parse(good));
    EXPECT_FALSE(holder_id::parse("")) << "empty";
    EXPECT_FALSE(holder_id::parse(good.substr(1))) << "too short";
    EXPECT_FALSE(holder_id::parse(good + "0")) << "too long";
    EXPECT_FALSE(holder_id::parse("AB00000000000000000000000000000f")) << "upper case";
    EXPECT_FALSE(holder_id::parse("gb00000000000000000000000000000f")) << "no digit";
    EXPECT_FALSE(holder_id::parse(" b00000000000000000000000000000f")) << "blank";
    EXPECT_FALSE(holder_id::parse(std::string(32, '0'))) << "the empty id names nobody";
}

TEST(HolderId, DrawnIdsAreNeverEmpty) {
    sleepy_entropy random{3};
    EXPECT_FALSE(holder_id::draw(random).empty());
}

TEST(HolderId, DrawnIdsDifferInEveryByte) {
    testing::seeded_entropy random{42};
    std::set<holder_id> drawn;
    std::array<std::set<std::byte>, 16> seen;
    for (int round = 0; round < 1000; ++round) {
        const auto id = holder_id::draw(random);
        drawn.insert(id);
        for (std::size_t at = 0; at < seen.size(); ++at) {
            seen[at].insert(id.bytes[at]);
        }
    }
    EXPECT_EQ(drawn.size(), 1000U);
    for (const auto& values : seen) {
        EXPECT_GT(values.size(), 200U);
    }
}

RC_GTEST_PROP(HolderIdProperty, SurvivesTextAndBack, (std::uint64_t seed)) {
    testing::seeded_entropy random{seed};
    const auto id = holder_id::draw(random);
    const auto back = holder_id::parse(id.text());
    RC_ASSERT(back.has_value());
    RC_ASSERT(*back == id);
}

}  // namespace dibs::core
