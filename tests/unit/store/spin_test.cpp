// SPDX-License-Identifier: Apache-2.0
#include "store/remote/spin.hpp"

#include <gtest/gtest.h>

namespace dibs::store::remote {
namespace {

int waits_that_look(spin& it, int waits, bool found) {
    int looks = 0;
    for (int wait = 0; wait < waits; ++wait) {
        if (it.pays()) {
            ++looks;
            it.ended(found);
        }
    }
    return looks;
}

TEST(Spin, LooksAtEachWaitWhereAnswersComeAtOnce) {
    spin it;
    EXPECT_EQ(waits_that_look(it, 100, true), 100);
}

TEST(Spin, IsHardlyTriedWhereAnswersTakeLonger) {
    spin it;
    EXPECT_EQ(waits_that_look(it, 10, false), 3);
    waits_that_look(it, 10'000, false);
    EXPECT_LE(waits_that_look(it, 10'240, false), 11);
}

TEST(Spin, BeginsAnewWithTheFirstAnswerInTime) {
    spin it;
    waits_that_look(it, 10'000, false);
    while (!it.pays()) {
    }
    it.ended(true);
    EXPECT_EQ(waits_that_look(it, 100, true), 100);
}

}  // namespace
}  // namespace dibs::store::remote
