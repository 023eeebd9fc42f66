// SPDX-License-Identifier: Apache-2.0
// Which slots are due after an outage, by what is known of the job.
#include "recipes/once/due_slots.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace dibs::recipes {
namespace {

using namespace std::chrono_literals;

class DueSlots : public ::testing::Test {
  protected:
    /// 2026-11-30T12:01Z.
    const core::wall_instant clock{std::chrono::seconds{1'796'040'060}};
    std::string fault;
    const schedule plan = *schedule::make_cron("0 * * * *", "UTC", fault);
    const slot now = plan.at(clock, 0s);

    [[nodiscard]] known_slot known(int hours_ago, bool over) const {
        auto at = now;
        for (int hour = 0; hour < hours_ago; ++hour) {
            at = plan.before(at);
        }
        return {at.name, at.begin, over};
    }
    /// The hours of the slots that are due.
    [[nodiscard]] std::string due(missed_slots policy,
                                  const std::vector<known_slot>& slots,
                                  std::size_t most = 100,
                                  core::microseconds late = 10min) {
        const auto found = find_due(plan, now, clock, slots, {policy, most, late});
        left_out = found.left_out;
        std::string hours;
        for (const auto& one : found.slots) {
            hours += (hours.empty() ? "" : " ") + one.name.substr(11, 2);
        }
        return hours;
    }
    std::size_t left_out = 0;
};

TEST_F(DueSlots, OfAJobOfWhichNothingIsKnownNoneWasMissed) {
    EXPECT_EQ(due(missed_slots::all, {}), "12");
    EXPECT_EQ(due(missed_slots::last, {}), "12");
}

TEST_F(DueSlots, AllAfterTheNewestKnownOne) {
    EXPECT_EQ(due(missed_slots::all, {known(4, true), known(3, true)}), "10 11 12");
    EXPECT_EQ(due(missed_slots::all, {known(0, true), known(3, true)}), "12")
        << "over: whoever asks for it is told so";
    EXPECT_EQ(due(missed_slots::last, {known(3, true)}), "12");
}

TEST_F(DueSlots, AlsoThoseThatWereStartedAndAreNotOver) {
    EXPECT_EQ(due(missed_slots::all, {known(5, false), known(4, true), known(2, true)}),
              "07 11 12");
    EXPECT_EQ(due(missed_slots::all, {known(0, false), known(1, true)}), "12");
}

TEST_F(DueSlots, WhatAHostWhoseClockIsAheadHasRunSaysNothing) {
    auto ahead = known(0, true);
    ahead.begin += 9h;
    ahead.name = "2026-11-30T21:00[UTC]";
    EXPECT_EQ(due(missed_slots::all, {known(2, true), ahead}), "11 12");
    ahead.over = false;
    EXPECT_EQ(due(missed_slots::all, {known(2, true), ahead}), "11 12");
}

TEST_F(DueSlots, UnfinishedSlotsOfAnotherScheduleAreNotOfThisOne) {
    auto other = known(3, false);
    other.name = "2026-11-30[UTC]";
    EXPECT_EQ(due(missed_slots::all, {other, known(1, true)}), "12");
}

TEST_F(DueSlots, TheNewestOfTooMany) {
    EXPECT_EQ(due(missed_slots::all, {known(9, false), known(8, true)}, 3), "10 11 12");
    EXPECT_EQ(left_out, 6U);
    EXPECT_EQ(due(missed_slots::all, {known(8, true)}, 8), "05 06 07 08 09 10 11 12");
    EXPECT_EQ(left_out, 0U);
    // After a year nobody counts for long.
    EXPECT_EQ(due(missed_slots::all, {known(5000, true)}, 2), "11 12");
    EXPECT_EQ(left_out, 200U);
}

TEST_F(DueSlots, NoneButInTimeOrBegun) {
    EXPECT_EQ(due(missed_slots::none, {}, 100, 1min), "12");
    EXPECT_EQ(due(missed_slots::none, {}, 100, 59s), "");
    EXPECT_EQ(due(missed_slots::none, {known(0, false)}, 100, 59s), "12");
    EXPECT_EQ(due(missed_slots::none, {known(1, false)}, 100, 59s), "");
}

}  // namespace
}  // namespace dibs::recipes
