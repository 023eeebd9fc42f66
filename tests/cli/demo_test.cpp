// SPDX-License-Identifier: Apache-2.0
// dibs demo duplicate-jobs: three e-mails without the lock, one with it.
#include "support.hpp"

#include <gtest/gtest.h>

#include <regex>
#include <string>

namespace dibs::testing {
namespace {

std::size_t times(const std::string& text, const std::string& pattern) {
    const std::regex wanted(pattern);
    return static_cast<std::size_t>(
        std::distance(std::sregex_iterator(text.begin(), text.end(), wanted), {}));
}

void expect_three_then_one(const outcome& found) {
    EXPECT_EQ(found.status, 0) << found.err;
    const auto three = found.out.find("e-mails sent: 3 (should be 1)");
    const auto one = found.out.find("e-mails sent: 1 (should be 1)");
    ASSERT_NE(three, std::string::npos) << found.out;
    ASSERT_NE(one, std::string::npos) << found.out;
    EXPECT_LT(three, one);
    EXPECT_EQ(times(found.out, R"(\d\d:\d\d:\d\d\.\d\d\d  container-[123]  e-mail sent)"), 4U)
        << found.out;
    EXPECT_EQ(times(found.out, R"(container-[123]  skips the job: held by .*pid \d+)"), 2U)
        << found.out;
}

TEST(Demo, DuplicateJobsShowsThreeAndThenOne) {
    const folder here;
    expect_three_then_one(run_dibs(here, {"demo", "duplicate-jobs"}));
    EXPECT_FALSE(exists(here.file("locks.db")));  // a store of its own
}

TEST(Demo, UsesTheStoreItIsGivenAndLeavesItFree) {
    const folder here;
    expect_three_then_one(run_dibs(here, {"demo", "duplicate-jobs", "--store", here.store()}));
    EXPECT_EQ(run_dibs(here, {"ls"}).out, "");
}

TEST(Demo, FailsWhenTheStoreDoes) {
    const folder here;
    EXPECT_NE(run_dibs(here, {"demo", "duplicate-jobs", "--store", "nonsense"}).status, 0);
    EXPECT_EQ(run_dibs(here, {"demo", "nothing"}).status, 64);
}

TEST(Demo, WatchdogShowsTwoAtWorkWithoutRenewalAndOneWithIt) {
    const folder here;
    const auto found = run_dibs(here, {"demo", "watchdog", "--fast"});
    EXPECT_EQ(found.status, 0) << found.out << found.err;
    EXPECT_EQ(times(found.out, "at work at the same time: 2"), 1U) << found.out;
    EXPECT_EQ(times(found.out, "at work at the same time: 1 "), 1U) << found.out;
}

TEST(Demo, BlindReleaseShowsThatAStrangersDeleteLetsAThirdIn) {
    const folder here;
    const auto found = run_dibs(here, {"demo", "blind-release", "--fast"});
    EXPECT_EQ(found.status, 0) << found.out << found.err;
    EXPECT_EQ(times(found.out, "1 row deleted, B's"), 1U) << found.out;
    EXPECT_EQ(times(found.out, "not held any more"), 1U) << found.out;
}

TEST(Demo, FencingShowsThatTheGuardedRowRefusesTheLateWrite) {
    const folder here;
    const auto found = run_dibs(here, {"demo", "fencing", "--fast"});
    EXPECT_EQ(found.status, 0) << found.out << found.err;
    EXPECT_EQ(times(found.out, "REFUSED"), 1U) << found.out;
    EXPECT_EQ(times(found.out, "guarded row: written last by B"), 1U) << found.out;
    EXPECT_FALSE(exists(here.file("locks.db")));
}

}  // namespace
}  // namespace dibs::testing
