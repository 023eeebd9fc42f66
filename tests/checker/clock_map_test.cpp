// SPDX-License-Identifier: Apache-2.0
// Instants of a clock in true time, between and after the pairs that are known; and how times read.
#include "checker/clock_map.hpp"

#include "checker/words.hpp"

#include <gtest/gtest.h>

namespace dibs_checker {
namespace {

TEST(ClockLine, DrawsStraightLinesBetweenPairs) {
    clock_line line;
    line.add(100, 1'000);
    line.add(200, 1'050);
    line.add(300, 1'350);
    EXPECT_EQ(line.reaches(1'000, 0), 100);
    EXPECT_EQ(line.reaches(1'025, 100), 150);
    EXPECT_EQ(line.reaches(1'050, 100), 200);
    EXPECT_EQ(line.reaches(1'200, 100), 250);
}

TEST(ClockLine, RunsTrueAfterTheLastPair) {
    clock_line line;
    line.add(100, 1'000);
    EXPECT_EQ(line.reaches(1'500, 100), 600);
    EXPECT_EQ(line.reaches(never, 100), never - 900);
    clock_line behind;
    behind.add(1'000, -1'000);
    EXPECT_EQ(behind.reaches(never, 1'000), never);
}

TEST(ClockLine, NeverAnswersWithSomethingBeforeTheQuestion) {
    clock_line line;
    line.add(100, 1'000);
    line.add(200, 1'100);
    EXPECT_EQ(line.reaches(500, 150), 150);
    EXPECT_EQ(line.reaches(1'010, 150), 150);
}

TEST(ClockLine, JumpsOverASuspend) {
    clock_line line;
    line.add(100, 100);
    line.add(200, 200);
    line.add(200, 5'200);
    line.add(300, 5'300);
    EXPECT_EQ(line.reaches(3'000, 100), 200);
    EXPECT_EQ(line.reaches(5'250, 100), 250);
}

TEST(ClockLine, FindsTheFirstTimeAlsoWhenTheClockIsSetBack) {
    clock_line line;
    line.add(0, 0);
    line.add(100, 100);
    line.add(100, 50);
    line.add(300, 250);
    EXPECT_EQ(line.reaches(80, 0), 80);
    EXPECT_EQ(line.reaches(80, 110), 130);
    EXPECT_EQ(line.reaches(200, 0), 250);
}

TEST(ClockLine, TakesTheLastOfSeveralPairsOfOneInstant) {
    clock_line line;
    line.add(0, 0);
    line.add(10, 10);
    line.add(10, 500);
    line.add(20, 510);
    EXPECT_EQ(line.reaches(505, 10), 15);
}

TEST(Words, TellTimesExactly) {
    EXPECT_EQ(time_text(0), "0 ns");
    EXPECT_EQ(time_text(17), "17 ns");
    EXPECT_EQ(time_text(1'500), "1.5 µs");
    EXPECT_EQ(time_text(20'250'000), "20.25 ms");
    EXPECT_EQ(time_text(1'000'000'001), "1.000000001 s");
    EXPECT_EQ(time_text(-1'500'000'000), "-1.5 s");
    EXPECT_EQ(time_text(std::numeric_limits<std::int64_t>::min()), "-9223372036.854775808 s");
}

TEST(Words, QuoteNamesWithoutControlCharacters) {
    EXPECT_EQ(quoted("a\"b\\c\n\x7f"), R"("a\"b\\c\x0a\x7f")");
}

}  // namespace
}  // namespace dibs_checker
