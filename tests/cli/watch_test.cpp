// SPDX-License-Identifier: Apache-2.0
// dibs watch: what changed between two looks, and the command around it.
#include "cli/commands/watched_changes.hpp"
#include "support.hpp"
#include "support/places.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <csignal>
#include <sstream>
#include <string>
#include <vector>

namespace dibs::testing {
namespace {

using namespace std::chrono_literals;
using cli::change;
using instant = std::chrono::system_clock::time_point;

dibs::record record_of(const std::string& key, std::uint64_t fence) {
    dibs::record made;
    made.key = key;
    made.fence = fence;
    return made;
}

dibs::record held(const std::string& key, std::uint64_t fence) {
    auto made = record_of(key, fence);
    dibs::holder who;
    who.fence = fence;
    who.fence_last = fence;
    who.remaining = 10s;
    made.holders.push_back(who);
    return made;
}

/// "granted k 5, released k 5"
std::string told(const std::vector<change>& changes) {
    std::string text;
    for (const auto& one : changes) {
        text += (text.empty() ? "" : ", ") + std::string(one.what) + " " + one.key;
        text += one.fence != 0 ? " " + std::to_string(one.fence) : "";
        text += one.reason.empty() ? "" : " " + one.reason;
    }
    return text;
}

TEST(Changes, BeginWithHowThingsAre) {
    cli::watched_changes seen;
    EXPECT_EQ(told(seen.look({record_of("idle", 4), held("k", 5)}, instant{})), "granted k 5");
    EXPECT_EQ(told(seen.look({record_of("idle", 4), held("k", 5)}, instant{} + 1s)), "");
}

TEST(Changes, ReleasedInTimeExpiredLater) {
    cli::watched_changes seen;
    (void)seen.look({held("k", 5)}, instant{});
    EXPECT_EQ(told(seen.look({record_of("k", 5)}, instant{} + 9s)), "released k 5");
    (void)seen.look({held("k", 6)}, instant{} + 10s);
    EXPECT_EQ(told(seen.look({record_of("k", 6)}, instant{} + 20s)), "expired k 6");
}

TEST(Changes, WhatNeverEndsByTimeIsReleased) {
    cli::watched_changes seen;
    auto for_ever = held("k", 5);
    for_ever.holders[0].remaining = std::chrono::microseconds::max();
    (void)seen.look({for_ever}, instant{});
    EXPECT_EQ(told(seen.look({record_of("k", 5)}, instant{} + 1s)), "released k 5");
}

TEST(Changes, OfHandEndBeforeTheyBegin) {
    cli::watched_changes seen;
    (void)seen.look({held("k", 5)}, instant{});
    EXPECT_EQ(told(seen.look({held("k", 7)}, instant{} + 1s)), "released k 5, granted k 7");
}

TEST(Changes, BetweenTwoLooksAreToldByTheFence) {
    cli::watched_changes seen;
    (void)seen.look({record_of("k", 5)}, instant{});
    EXPECT_EQ(told(seen.look({record_of("k", 6), record_of("new", 3)}, instant{} + 1s)),
              "granted k 6, released k 6, granted new 3, released new 3");
}

TEST(Changes, OfARecordThatTheStoreForgot) {
    cli::watched_changes seen;
    (void)seen.look({held("k", 5), record_of("l", 6)}, instant{});
    EXPECT_EQ(told(seen.look({}, instant{} + 1s)), "released k 5");
}

TEST(Changes, ABlockThatGrewIsTheSameLease) {
    cli::watched_changes seen;
    (void)seen.look({held("k", 5)}, instant{});
    auto grown = held("k", 9);
    grown.holders[0].fence = 5;
    EXPECT_EQ(told(seen.look({grown}, instant{} + 1s)), "");
}

TEST(Changes, HoldsAreSetReplacedAndLifted) {
    cli::watched_changes seen;
    (void)seen.look({record_of("k", 5)}, instant{});
    auto blocked = record_of("k", 5);
    blocked.blocked_for = 1h;
    blocked.blocked_reason = "one";
    EXPECT_EQ(told(seen.look({blocked}, instant{} + 1s)), "hold-set k one");
    EXPECT_EQ(told(seen.look({blocked}, instant{} + 2s)), "");
    blocked.blocked_reason = "two";
    EXPECT_EQ(told(seen.look({blocked}, instant{} + 3s)), "hold-lifted k, hold-set k two");
    EXPECT_EQ(told(seen.look({record_of("k", 5)}, instant{} + 4s)), "hold-lifted k");
}

/// The lines of `dibs watch --json` so far: "granted invoice:1".
std::vector<std::string> events(const process& watching) {
    std::vector<std::string> all;
    std::istringstream lines(watching.out());
    for (std::string line; std::getline(lines, line);) {
        const auto one = nlohmann::json::parse(line);
        all.push_back(one["change"].get<std::string>() + " " + one["key"].get<std::string>());
    }
    return all;
}

TEST(Watch, TellsEachChangeUntilItIsInterrupted) {
    const folder here;
    ASSERT_EQ(run_dibs(here, {"acquire", "invoice:0"}).status, 0);
    ASSERT_EQ(run_dibs(here, {"acquire", "other"}).status, 0);
    process watching(dibs_on(here, {"watch", "invoice:", "--json", "--every", "50ms"}));
    const std::vector<std::string> first{"granted invoice:0"};
    ASSERT_TRUE(eventually([&] { return events(watching) == first; })) << watching.out();
    const auto taken = run_dibs(here, {"acquire", "invoice:1"});
    ASSERT_TRUE(eventually([&] { return events(watching).size() == 2; })) << watching.out();
    auto giving = dibs_on(here, {"release"});
    giving.variables["DIBS_HANDLE"] = taken.out;
    ASSERT_EQ(process(giving).wait().status, 0);
    ASSERT_TRUE(eventually([&] { return events(watching).size() == 3; })) << watching.out();
    ASSERT_EQ(run_dibs(here, {"hold", "invoice:1", "--for", "1h", "--reason", "x"}).status, 0);
    const std::vector<std::string> all{
        "granted invoice:0", "granted invoice:1", "released invoice:1", "hold-set invoice:1"};
    EXPECT_TRUE(eventually([&] { return events(watching) == all; })) << watching.out();
    watching.signal(SIGINT);
    const auto ended = watching.wait();
    EXPECT_EQ(ended.status, 0) << ended.err;
    EXPECT_EQ(ended.err, "");
}

TEST(Watch, EndsWhenNobodyReadsAnyMore) {
    const folder here;
    ASSERT_EQ(run_dibs(here, {"run", "k", "true"}).status, 0);
    // The status is told by a file, since a pipe has that of its reader.
    auto how = dibs_on(here, {"-c", "{ \"$0\" watch --every 50ms; echo $? > status; } | true"});
    how.words.emplace_back(tests::places::command);
    how.program = "/bin/sh";
    const auto ended = process(how).wait();
    EXPECT_EQ(ended.err, "");
    EXPECT_EQ(read_file(here.file("status")), "0\n");
}

}  // namespace
}  // namespace dibs::testing
