// SPDX-License-Identifier: Apache-2.0
// dibs once is told to end in mid-job: nobody's failure, and others may run the slot.
#include "support.hpp"

#include <gtest/gtest.h>
#include <sys/types.h>

#include <csignal>
#include <string>
#include <vector>

namespace dibs::testing {
namespace {

using list = std::vector<std::string>;

launch once_on(const folder& here, list options, const std::string& script) {
    list words{"once", "--slot", "s"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"job", "--", "sh", "-c", script});
    return dibs_on(here, words);
}

outcome once(const folder& here, list options) {
    return process(once_on(here, std::move(options), "echo $DIBS_ATTEMPT >> ran")).wait();
}

/// Its child is at work, and has written its process id to `begun`.
class at_work {
  public:
    explicit at_work(const folder& here, list options = {}, const std::string& script = sleeper)
        : here_(here), command_(once_on(here, std::move(options), script)) {
        EXPECT_TRUE(eventually([&] { return exists(here.file("begun")); })) << command_.err();
    }
    static constexpr auto sleeper = "echo $$ > begun.new; mv begun.new begun; exec sleep 100";
    [[nodiscard]] process& command() { return command_; }
    [[nodiscard]] pid_t child() const { return std::stoi(read_file(here_.file("begun"))); }

  private:
    const folder& here_;
    process command_;
};

std::string runs(const folder& here) {
    return run_dibs(here, {"runs", "job", "--json"}).out;
}

TEST(OnceSignals, ARunThatWasInterruptedIsFreeForOthersAtOnce) {
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
        const folder here;
        at_work first(here, {"--ttl", "1h", "--status-file", here.file("report")});
        first.command().signal(signal);
        EXPECT_EQ(first.command().wait().status, 128 + signal);
        const auto told = runs(here);
        EXPECT_NE(told.find("\"outcome\": \"interrupted\""), std::string::npos) << told;
        EXPECT_NE(told.find("\"failures\": 0"), std::string::npos) << told;
        const auto report = read_file(here.file("report"));
        EXPECT_NE(report.find("\"outcome\": \"interrupted\""), std::string::npos) << report;
        EXPECT_NE(report.find("\"status\": " + std::to_string(128 + signal)), std::string::npos)
            << report;
        EXPECT_NE(run_dibs(here, {"once", "job", "--slot", "s", "--dry-run"}).out.find("yes"),
                  std::string::npos);
        EXPECT_EQ(once(here, {}).status, 0);
        EXPECT_EQ(read_file(here.file("ran")), "2\n");
    }
}

TEST(OnceSignals, AWaiterTakesOverFromAnInterruptedRun) {
    const folder here;
    at_work first(here, {"--ttl", "1h"});
    process waits(once_on(here, {"--wait", "1h"}, "echo $DIBS_ATTEMPT >> ran"));
    ASSERT_TRUE(eventually([&] {
        return run_dibs(here, {"ls", "--json"}).out.find("\"waiters\": 1") != std::string::npos;
    }));
    first.command().signal(SIGTERM);
    EXPECT_EQ(first.command().wait().status, 128 + SIGTERM);
    EXPECT_EQ(waits.wait().status, 0);
    EXPECT_EQ(read_file(here.file("ran")), "2\n");
}

TEST(OnceSignals, AnInterruptionUsesUpNoRetry) {
    const folder here;
    at_work first(here, {"--retries", "1", "--backoff", "0s"});
    first.command().signal(SIGTERM);
    EXPECT_EQ(first.command().wait().status, 128 + SIGTERM);
    for (const bool last : {false, true}) {
        EXPECT_EQ(
            process(once_on(here, {"--retries", "1", "--backoff", "0s"}, "exit 9")).wait().status,
            9);
        const auto told = runs(here);
        EXPECT_EQ(told.find("\"outcome\": \"failed\"") != std::string::npos, last) << told;
    }
}

TEST(OnceSignals, AtMostOnceAnInterruptedSlotIsNeverRunAgain) {
    const folder here;
    at_work first(here, {"--at-most-once"});
    first.command().signal(SIGTERM);
    EXPECT_EQ(first.command().wait().status, 128 + SIGTERM);
    EXPECT_NE(runs(here).find("\"outcome\": \"interrupted\""), std::string::npos);
    for (const auto& again : {list{"--at-most-once", "-v"}, list{"-v"}}) {
        const auto late = once(here, again);
        EXPECT_EQ(late.status, 128 + SIGTERM);
        EXPECT_NE(late.err.find("interrupted"), std::string::npos) << late.err;
    }
    EXPECT_FALSE(exists(here.file("ran")));
}

TEST(OnceSignals, AChildThatEndsWellAllTheSameIsDone) {
    const folder here;
    at_work first(here,
                  {},
                  "trap 'kill $!; exit 0' TERM; echo $$ > begun.new; sleep 100 & mv begun.new "
                  "begun; wait");
    first.command().signal(SIGTERM);
    EXPECT_EQ(first.command().wait().status, 0);
    EXPECT_NE(runs(here).find("\"outcome\": \"done\""), std::string::npos);
}

TEST(OnceSignals, AChildThatIsMadeToEndIsInterruptedToo) {
    const folder here;
    at_work first(
        here,
        {},
        "trap '' TERM; echo $$ > begun.new; mv begun.new begun; while :; do sleep 0.1; done");
    first.command().signal(SIGTERM);
    // A second TERM makes it end, unless it comes so soon that it is an echo of the first.
    EXPECT_TRUE(eventually([&] {
        first.command().signal(SIGTERM);
        return first.command().ended();
    }));
    EXPECT_EQ(first.command().wait().status, 128 + SIGKILL);
    EXPECT_NE(runs(here).find("\"outcome\": \"interrupted\""), std::string::npos) << runs(here);
}

TEST(OnceSignals, ASignalToTheChildAloneIsAFailure) {
    const folder here;
    at_work first(here);
    ::kill(first.child(), SIGTERM);
    EXPECT_EQ(first.command().wait().status, 128 + SIGTERM);
    EXPECT_NE(runs(here).find("\"outcome\": \"failed\""), std::string::npos);
    EXPECT_EQ(once(here, {}).status, 128 + SIGTERM);
    EXPECT_FALSE(exists(here.file("ran")));
}

TEST(OnceSignals, ASignalThatReachesTheChildFirstInterruptsAsWell) {
    const folder here;
    at_work first(here);
    first.command().signal(SIGSTOP);
    ASSERT_TRUE(eventually([&] { return state_of(first.command().id()) == 'T'; }));
    ::kill(first.child(), SIGTERM);
    ASSERT_TRUE(eventually([&] { return !is_running(first.child()); }));
    first.command().signal(SIGTERM);
    first.command().signal(SIGCONT);
    EXPECT_EQ(first.command().wait().status, 128 + SIGTERM);
    EXPECT_NE(runs(here).find("\"outcome\": \"interrupted\""), std::string::npos) << runs(here);
}

TEST(OnceSignals, AnIgnoredHangupInterruptsNothing) {
    const folder here;
    auto how = once_on(here, {}, at_work::sleeper);
    how.ignored = {SIGHUP};
    process first(how);
    ASSERT_TRUE(eventually([&] { return exists(here.file("begun")); })) << first.err();
    first.signal(SIGHUP);
    EXPECT_FALSE(eventually([&] { return first.ended(); }, std::chrono::milliseconds{300}));
    ::kill(std::stoi(read_file(here.file("begun"))), SIGTERM);
    EXPECT_EQ(first.wait().status, 128 + SIGTERM);
    EXPECT_NE(runs(here).find("\"outcome\": \"failed\""), std::string::npos);
}

}  // namespace
}  // namespace dibs::testing
