// SPDX-License-Identifier: Apache-2.0
// dibs demo duplicate-jobs: three e-mails without the lock, one with it.
#include "support.hpp"
#include "support/places.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
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

/// A demo on a folder for temporary files that is empty before and should be so afterwards.
launch demo_in(const folder& scratch, const std::string& script) {
    launch how;
    how.program = "/bin/sh";
    how.words = {"-c", script};
    how.variables["DIBS"] = tests::places::command;
    how.variables["TMPDIR"] = scratch.path();
    return how;
}

bool is_empty(const folder& scratch) {
    return std::filesystem::is_empty(scratch.path());
}

TEST(Demo, LeavesNothingBehindWhenItsReaderDoes) {
    for (const char* name : {"duplicate-jobs",
                             "watchdog --fast",
                             "blind-release --fast",
                             "no-expiry --fast",
                             "fencing --fast"}) {
        const folder scratch;
        const auto found =
            process(demo_in(scratch,
                            std::string("{ \"$DIBS\" demo ") + name + "; echo $? >&2; } | head -1"))
                .wait();
        EXPECT_EQ(found.err, "141\n") << name;
        EXPECT_TRUE(is_empty(scratch)) << name;
    }
}

TEST(Demo, LeavesNeitherFileNorProcessBehindWhenItIsInterrupted) {
    for (const char* name :
         {"duplicate-jobs", "watchdog", "blind-release", "no-expiry", "fencing"}) {
        for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
            const folder scratch;
            process running(demo_in(scratch, std::string("exec \"$DIBS\" demo ") + name));
            ASSERT_TRUE(eventually([&] {
                return !running.out().empty() && !children_named(running.id(), "dibs").empty();
            })) << name;
            const auto player = children_named(running.id(), "dibs").at(0);
            running.signal(signal);
            EXPECT_EQ(running.wait().status, -signal) << name;
            EXPECT_TRUE(is_empty(scratch)) << name;
            EXPECT_NE(::kill(-player, 0), 0) << name << ": somebody of it is still there";
        }
    }
}

TEST(Demo, FailsWhenTheStoreDoes) {
    const folder here;
    EXPECT_EQ(run_dibs(here, {"demo", "nothing"}).status, 64);
    for (const auto* name : {"duplicate-jobs",
                             "token-stampede",
                             "watchdog",
                             "blind-release",
                             "no-expiry",
                             "fencing",
                             "concurrent-updates"}) {
        // At once, and as any command: before it has shown half of what it was to show.
        const auto nonsense = run_dibs(here, {"demo", name, "--store", "nonsense"});
        EXPECT_EQ(nonsense.status, 78) << name << nonsense.err;
        const auto gone =
            run_dibs(here, {"demo", name, "--store", "sqlite:" + here.file("no/x.db")});
        EXPECT_EQ(gone.status, 69) << name << gone.err;
        EXPECT_EQ(nonsense.out + gone.out, "") << name;
    }
    const auto advisory =
        run_dibs(here, {"demo", "fencing", "--store", "postgres+advisory://localhost/d"});
    EXPECT_EQ(advisory.status, 64) << advisory.err;
}

TEST(Demo, WatchdogShowsTwoAtWorkWithoutRenewalAndOneWithIt) {
    const folder here;
    const auto found = run_dibs(here, {"demo", "watchdog", "--fast"});
    EXPECT_EQ(found.status, 0) << found.out << found.err;
    EXPECT_EQ(times(found.out, "at work at the same time: 2"), 1U) << found.out;
    EXPECT_EQ(times(found.out, "at work at the same time: 1 "), 1U) << found.out;
}

TEST(Demo, TokenStampedeShowsOneRefreshForFifty) {
    const folder here;
    const auto found = run_dibs(here, {"demo", "token-stampede", "--fast"});
    EXPECT_EQ(found.status, 0) << found.out << found.err;
    EXPECT_EQ(times(found.out, "refreshes at the provider: 50 "), 1U) << found.out;
    EXPECT_EQ(times(found.out, "requests refused .401.: 49 "), 1U) << found.out;
    EXPECT_EQ(times(found.out, "refreshes at the provider: 1 "), 1U) << found.out;
    EXPECT_EQ(times(found.out, "requests served: 50 "), 2U) << found.out;
    EXPECT_EQ(times(found.out, "yes: all are revoked"), 1U) << found.out;
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

TEST(Demo, ConcurrentUpdatesInAFileLoseOneAndThenNone) {
    const folder here;
    const auto found = run_dibs(here, {"demo", "concurrent-updates", "--fast"});
    EXPECT_EQ(found.status, 0) << found.out << found.err;
    const auto lost = found.out.find("final stock: 8 (should be 5)");
    ASSERT_NE(lost, std::string::npos) << found.out;
    std::size_t right = 0;
    for (auto at = found.out.find("final stock: 5", lost); at != std::string::npos;
         at = found.out.find("final stock: 5", at + 1)) {
        ++right;
    }
    EXPECT_EQ(right, 3U) << found.out;
    EXPECT_EQ(times(found.out, "admin-B  version changed under me -> retry 1"), 1U) << found.out;
    EXPECT_EQ(times(found.out, "admin-B  waits for the file"), 1U) << found.out;
    EXPECT_EQ(times(found.out, "admin-B  sold no 9 more: 5 left"), 1U) << found.out;
}

TEST(Demo, NoExpiryShowsThatAKilledHolderKeepsAHandMadeLock) {
    const folder here;
    const auto found = run_dibs(here, {"demo", "no-expiry", "--fast"});
    EXPECT_EQ(found.status, 0) << found.out << found.err;
    EXPECT_EQ(times(found.out, "nobody is there, and the lock is held"), 2U) << found.out;
    EXPECT_EQ(times(found.out, R"(B  has the key, \d+ ms later)"), 1U) << found.out;
}

}  // namespace
}  // namespace dibs::testing
