// SPDX-License-Identifier: Apache-2.0
// A lease as text: what is written is read back, and nothing else is taken for one.

#include "client/leases/handed_over.hpp"

#include "support/verbs.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <string>

namespace dibs::detail {

namespace {
using dibs::testing::holder_of;
}

RC_GTEST_PROP(HandedOver, IsReadBackAsItWasWritten, (std::uint64_t number, std::uint64_t fence)) {
    RC_PRE(fence != 0);
    const auto key =
        *rc::gen::nonEmpty(rc::gen::container<std::string>(rc::gen::inRange('!', '~')));
    const handed_over written{holder_of(number), fence, key};
    const auto read = handed_over::parse(written.text());
    RC_ASSERT(read.has_value());
    RC_ASSERT(read->holder == written.holder);
    RC_ASSERT(read->fence == fence);
    RC_ASSERT(read->key == key);
}

TEST(HandedOver, AKeyMayHoldColons) {
    const handed_over written{holder_of(1), 7, "a:b::7:"};
    EXPECT_EQ(handed_over::parse(written.text())->key, "a:b::7:");
    const handed_over about_handles{holder_of(1), 7, "dibs1: what it means"};
    EXPECT_EQ(handed_over::parse(about_handles.text())->key, about_handles.key);
}

TEST(HandedOver, RefusesWhatIsNoHandedOverLease) {
    const auto good = handed_over{holder_of(1), 7, "key"}.text();
    ASSERT_TRUE(handed_over::parse(good));
    const auto holder = holder_of(1).text();
    const std::string empty_holder(32, '0');
    for (const auto& text : {std::string{},
                             std::string("dibs1:"),
                             "dibs2:" + holder + ":7:key",
                             "dibs1:" + holder,
                             "dibs1:" + holder + ":",
                             "dibs1:" + holder + ":7",
                             "dibs1:" + holder + ":7:",
                             "dibs1:" + holder + ":0:key",
                             "dibs1:" + holder + ":-7:key",
                             "dibs1:" + holder + ":7x:key",
                             "dibs1:" + holder + ":99999999999999999999999:key",
                             "dibs1:" + holder + "::key",
                             "dibs1:" + holder + ":7:ke\ny",
                             "dibs1:" + holder.substr(1) + ":7:key",
                             "dibs1:" + std::string(32, 'x') + ":7:key",
                             good + " " + good,
                             good + good,
                             " " + good}) {
        EXPECT_FALSE(handed_over::parse(text)) << text;
    }
    for (std::size_t length = 0; length < good.size() - 2; ++length) {
        const auto cut = handed_over::parse(good.substr(0, length));
        EXPECT_FALSE(cut) << length;
    }
}

}  // namespace dibs::detail
