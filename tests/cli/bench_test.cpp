// SPDX-License-Identifier: Apache-2.0
// dibs bench: that it really works on the store, tells what it found and leaves nothing held. Not
// how fast that is.
#include "support.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>

namespace dibs::testing {
namespace {

using json = nlohmann::json;

TEST(Bench, MeasuresAndGivesEverythingBack) {
    const folder here;
    const auto ended = run_dibs(here, {"bench", "--seconds", "1", "--callers", "3", "--json"});
    ASSERT_EQ(ended.status, 0) << ended.err;
    const auto told = json::parse(ended.out);
    EXPECT_EQ(told["callers"], 3);
    for (const char* figure : {"cycles_per_second_1",
                               "cycles_per_second_n",
                               "hand_over_us_median",
                               "renewals_per_second"}) {
        EXPECT_GT(told[figure].get<double>(), 0) << figure;
    }
    EXPECT_EQ(json::parse(run_dibs(here, {"ls", "--json"}).out), json::array());
}

TEST(Bench, RefusesNonsense) {
    const folder here;
    for (const char* seconds : {"0", "-1", "601", "3s", ""}) {
        const auto ended = run_dibs(here, {"bench", "--seconds", seconds});
        EXPECT_EQ(ended.status, 64) << seconds;
        EXPECT_NE(ended.err.find("--seconds"), std::string::npos) << ended.err;
    }
}

}  // namespace
}  // namespace dibs::testing
