// SPDX-License-Identifier: Apache-2.0
// Fences rise with every grant, never outrun the clock, and survive the loss of the stored number.

#include "core/fence.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <chrono>

namespace dibs::core {

namespace {

wall_instant at(std::int64_t micros) {
    return wall_instant{microseconds{micros}};
}

}  // namespace

TEST(Fence, IsTheClockWhenThatIsAhead) {
    EXPECT_EQ(next_fences(0, at(1'000'000), 0, 1), (fence_block{1'000'000, 1'000'000}));
    EXPECT_EQ(next_fences(999'998, at(1'000'000), 0, 1), (fence_block{1'000'000, 1'000'000}));
}

TEST(Fence, CountsOnWhenTheClockIsBehind) {
    EXPECT_EQ(next_fences(1'000'000, at(1'000'000), 0, 1), (fence_block{1'000'001, 1'000'001}));
    EXPECT_EQ(next_fences(2'000'000, at(1'000'000), 0, 9), (fence_block{2'000'001, 2'000'001}));
    EXPECT_EQ(next_fences(7, at(-5), 0, 1), (fence_block{8, 8})) << "a clock before 1970";
    EXPECT_EQ(next_fences(0, at(0), 0, 1), (fence_block{1, 1})) << "0 means no fence";
}

TEST(Fence, ExceedsTheFloor) {
    EXPECT_EQ(next_fences(10, at(100), 5000, 1), (fence_block{5001, 5001}));
    EXPECT_EQ(next_fences(5000, at(100), 10, 1), (fence_block{5001, 5001}));
}

TEST(Fence, ABlockReachesBackFromTheClock) {
    EXPECT_EQ(next_fences(0, at(1000), 0, 10), (fence_block{991, 1000}));
    EXPECT_EQ(next_fences(995, at(1000), 0, 10), (fence_block{996, 1000})) << "five, not ten";
    EXPECT_EQ(next_fences(0, at(1000), 0, 0), (fence_block{1000, 1000})) << "never none";
}

TEST(Fence, ABlockContainsItsFencesOnly) {
    const fence_block block{10, 12};
    EXPECT_FALSE(block.contains(9));
    EXPECT_TRUE(block.contains(10));
    EXPECT_TRUE(block.contains(12));
    EXPECT_FALSE(block.contains(13));
    EXPECT_FALSE(fence_block{}.contains(0)) << "no fence is in no block";
}

RC_GTEST_PROP(FenceProperty, RisesAndNeverOutrunsTheClock, ()) {
    const auto stored = *rc::gen::inRange<fence_number>(0, fence_number{1} << 53U);
    const auto floor = *rc::gen::inRange<fence_number>(0, fence_number{1} << 53U);
    const auto clock = *rc::gen::inRange<std::int64_t>(-1000, std::int64_t{1} << 53U);
    const auto wanted = *rc::gen::inRange<std::uint32_t>(0, 100'000);
    const auto given = next_fences(stored, at(clock), floor, wanted);
    RC_ASSERT(given.first > stored);
    RC_ASSERT(given.first > floor);
    RC_ASSERT(given.first <= given.last);
    const auto count = given.last - given.first + 1;
    RC_ASSERT(count <= std::max<std::uint32_t>(wanted, 1));
    RC_ASSERT(count == 1 || given.last <= static_cast<fence_number>(clock));
}

RC_GTEST_PROP(FenceProperty, RisesAfterTheStoredNumberWasLost, ()) {
    // As long as the clock is ahead of the record, and has moved on since the grant, forgetting the
    // record is harmless.
    const auto first_at = *rc::gen::inRange<std::int64_t>(1, std::int64_t{1} << 52U);
    const auto later_by = *rc::gen::inRange<std::int64_t>(1, 1'000'000);
    const auto stored = *rc::gen::inRange<fence_number>(0, static_cast<fence_number>(first_at));
    const auto wanted = *rc::gen::inRange<std::uint32_t>(1, 1000);
    const auto before = next_fences(stored, at(first_at), 0, wanted);
    const auto after = next_fences(0, at(first_at + later_by), 0, 1);
    RC_ASSERT(after.last > before.last);
}

}  // namespace dibs::core
