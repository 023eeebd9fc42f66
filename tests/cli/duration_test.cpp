// SPDX-License-Identifier: Apache-2.0
// What is a duration and what is not.
#include "cli/options/duration.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace dibs::cli {
namespace {

using std::chrono::milliseconds;

TEST(Duration, KnowsItsUnitsAndFractions) {
    const std::pair<const char*, long> known[] = {{"0s", 0},
                                                  {"1ms", 1},
                                                  {"500ms", 500},
                                                  {"0.5s", 500},
                                                  {"1.001s", 1'001},
                                                  {"1.0010s", 1'001},
                                                  {"30s", 30'000},
                                                  {"1.5m", 90'000},
                                                  {"0.25h", 900'000},
                                                  {"2h", 7'200'000},
                                                  {"1d", 86'400'000},
                                                  {"0.001d", 86'400},
                                                  {"007s", 7'000}};
    for (const auto& [text, ms] : known) {
        EXPECT_EQ(parse_duration(text), milliseconds{ms}) << text;
    }
}

TEST(Duration, RefusesEverythingElse) {
    for (const char* text : {"",
                             "s",
                             "10",
                             "0",
                             "-1s",
                             "+1s",
                             " 1s",
                             "1s ",
                             "10 s",
                             "1e3s",
                             "1e3",
                             "NaN",
                             "inf",
                             "nans",
                             ".5s",
                             "5.s",
                             "1..5s",
                             "1.5.5s",
                             "1m30s",
                             "1S",
                             "1sec",
                             "1w",
                             "0.4ms",
                             "0.0001s",
                             "\xEF\xBC\x90s",
                             "1\xC2\xB5s",
                             "0x10s",
                             "99999999999999999999s",
                             "36501d",
                             "1,5s"}) {
        EXPECT_THROW((void)parse_duration(text), std::invalid_argument) << text;
    }
}

TEST(Duration, TellsWhatToWriteInsteadOfABareNumber) {
    try {
        (void)parse_duration("30");
        FAIL();
    } catch (const std::invalid_argument& fault) {
        EXPECT_NE(std::string(fault.what()).find("30s"), std::string::npos);
    }
}

TEST(Duration, IsShownShortly) {
    EXPECT_EQ(show_duration(milliseconds{0}), "0 ms");
    EXPECT_EQ(show_duration(milliseconds{-5}), "0 ms");
    EXPECT_EQ(show_duration(milliseconds{350}), "350 ms");
    EXPECT_EQ(show_duration(milliseconds{2'550}), "2.5 s");
    EXPECT_EQ(show_duration(milliseconds{12'999}), "12 s");
    EXPECT_EQ(show_duration(milliseconds{250'000}), "4 min 10 s");
    EXPECT_EQ(show_duration(milliseconds{3'660'000}), "1 h 1 min");
    EXPECT_EQ(show_duration(milliseconds{90'000'000}), "1 d 1 h");
}

TEST(Duration, IsWrittenAsItIsRead) {
    EXPECT_EQ(write_duration(milliseconds{30'000}), "30s");
    EXPECT_EQ(write_duration(milliseconds{300'000}), "5m");
    EXPECT_EQ(write_duration(milliseconds{86'400'000}), "1d");
    for (const auto length : {0, 1, 1'500, 60'000, 61'000, 7'200'000}) {
        EXPECT_EQ(parse_duration(write_duration(milliseconds{length})), milliseconds{length});
    }
}

}  // namespace
}  // namespace dibs::cli
