// SPDX-License-Identifier: Apache-2.0
// kill -9 of the wrapper, of the child, of the guard, and of several of them.
#include "support.hpp"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <csignal>
#include <string>

namespace dibs::testing {
namespace {

/// A run whose child writes beats.
class beating {
  public:
    beating(const folder& here,
            const std::string& log,
            const std::vector<std::string>& options,
            const std::string& manner)
        : log_(here.file(log)), command_(dibs_on(here, words(options, manner))) {
        EXPECT_TRUE(eventually([this] { return !read_beats(log_).empty(); })) << command_.err();
        EXPECT_TRUE(eventually([this] { return guard() > 0; }));
    }
    [[nodiscard]] pid_t child() const { return read_beats(log_).front().process; }
    [[nodiscard]] pid_t guard() const {
        const auto found = children_named(command_.id(), "dibs-guard");
        return found.empty() ? -1 : found.front();
    }
    [[nodiscard]] process& command() { return command_; }
    [[nodiscard]] std::string log() const { return log_; }

  private:
    [[nodiscard]] std::vector<std::string> words(std::vector<std::string> options,
                                                 const std::string& manner) const {
        options.insert(options.begin(), "run");
        options.insert(options.end(), {"k", child_program(), "beat", log_});
        if (!manner.empty()) {
            options.push_back(manner);
        }
        return options;
    }

    std::string log_;
    process command_;
};

TEST(RunKilled, WithoutItsWrapperTheChildIsStoppedByTheGuardBeforeAnybodyElseStarts) {
    for (const char* manner : {"", "stubborn"}) {
        const folder here;
        beating first(here, "beats", {"--ttl", "2s"}, manner);
        const auto guard = first.guard();
        process second(dibs_on(
            here, {"run", "--wait", "forever", "k", child_program(), "beat", here.file("beats")}));
        first.command().signal(SIGKILL);
        EXPECT_EQ(first.command().wait().status, -SIGKILL);
        EXPECT_TRUE(eventually([&] { return !is_running(first.child()); })) << manner;
        EXPECT_TRUE(eventually([&] { return !is_running(guard); }));
        EXPECT_TRUE(eventually([&] {
            return read_beats(first.log()).back().fence != read_beats(first.log()).front().fence;
        })) << second.err();
        second.signal(SIGTERM);
        second.wait();
        EXPECT_EQ(overlap_in(read_beats(first.log())), "");
    }
}

TEST(RunKilled, AKilledChildIsToldAndTheKeyIsFree) {
    const folder here;
    beating first(here, "beats", {"--ttl", "1h"}, "");
    ::kill(first.child(), SIGKILL);
    EXPECT_EQ(first.command().wait().status, 128 + SIGKILL);
    EXPECT_EQ(run_dibs(here, {"run", "k", "true"}).status, 0);
}

TEST(RunKilled, WrapperAndChildTogetherFreeTheKeyLongBeforeTheTtl) {
    const folder here;
    beating first(here, "beats", {"--ttl", "1h"}, "stubborn");
    const auto guard = first.guard();
    first.command().signal(SIGKILL);
    ::kill(first.child(), SIGKILL);
    first.command().wait();
    EXPECT_EQ(run_dibs(here, {"run", "--wait", "20s", "k", "true"}).status, 0);
    EXPECT_TRUE(eventually([&] { return !is_running(guard); }));
}

TEST(RunKilled, WithoutItsGuardTheWrapperCarriesOn) {
    const folder here;
    beating first(here, "beats", {"--ttl", "2s", "-v"}, "");
    ::kill(first.guard(), SIGKILL);
    EXPECT_TRUE(
        eventually([&] { return first.command().err().find("guard") != std::string::npos; }));
    first.command().signal(SIGTERM);
    EXPECT_EQ(first.command().wait().status, 128 + SIGTERM);
    EXPECT_EQ(run_dibs(here, {"run", "k", "true"}).status, 0);
}

TEST(RunKilled, WithoutItsGuardTheWrapperStillStopsTheWholeGroup) {
    const folder here;
    const auto log = here.file("beats");
    process running(dibs_on(here,
                            {"run",
                             "--max-runtime",
                             "2s",
                             "--grace",
                             "200ms",
                             "k",
                             "sh",
                             "-c",
                             child_program() + " beat " + log + " stubborn & exec sleep 300"}));
    ASSERT_TRUE(eventually([&] { return !read_beats(log).empty(); })) << running.err();
    ::kill(children_named(running.id(), "dibs-guard").front(), SIGKILL);
    EXPECT_EQ(running.wait().status, 124);
    EXPECT_FALSE(is_running(read_beats(log).front().process));
}

TEST(RunKilled, WithoutWrapperAndGuardTheLeaseLastsNoLongerThanItsTtl) {
    const folder here;
    beating first(here, "beats", {"--ttl", "1s"}, "");
    const auto child = first.child();
    ::kill(first.guard(), SIGKILL);
    first.command().signal(SIGKILL);
    first.command().wait();
    const auto next = run_dibs(here, {"run", "--wait", "20s", "k", "sh", "-c", "echo $DIBS_FENCE"});
    EXPECT_EQ(next.status, 0) << next.err;
    // Nobody is left who could stop it: its writes carry an older fence.
    EXPECT_TRUE(is_running(child));
    EXPECT_GT(std::stoull(next.out), read_beats(first.log()).front().fence);
    ::kill(child, SIGKILL);
}

TEST(RunKilled, TheGuardEndsAlthoughNobodyReapsTheChild) {
    // As under a first process of a container that never reaps: the orphans come to this test.
    ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    const folder here;
    beating first(here, "beats", {"--ttl", "1s"}, "");
    const auto child = first.child();
    const auto guard = first.guard();
    first.command().signal(SIGKILL);
    first.command().wait();
    EXPECT_TRUE(eventually([&] { return state_of(child) == 'Z'; }));
    EXPECT_TRUE(eventually([&] { return !is_running(guard); }));
    ::waitpid(child, nullptr, 0);
    ::waitpid(guard, nullptr, 0);
    ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

TEST(RunKilled, TheGuardEndsWithTheRun) {
    const folder here;
    beating first(here, "beats", {}, "");
    const auto guard = first.guard();
    first.command().signal(SIGTERM);
    first.command().wait();
    EXPECT_FALSE(is_running(guard));
}

}  // namespace
}  // namespace dibs::testing
