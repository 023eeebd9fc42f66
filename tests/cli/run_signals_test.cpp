// SPDX-License-Identifier: Apache-2.0
// Signals to the wrapper reach the child, once.
#include "support.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <sstream>
#include <string>
#include <vector>

namespace dibs::testing {
namespace {

std::vector<int> numbers_in(const std::string& path) {
    std::istringstream lines(read_file(path));
    std::string first;
    std::getline(lines, first);
    std::vector<int> found;
    for (int number = 0; lines >> number;) {
        found.push_back(number);
    }
    return found;
}

std::ptrdiff_t times(const std::vector<int>& all, int number) {
    return std::count(all.begin(), all.end(), number);
}

TEST(RunSignals, EveryCatchableOneIsForwardedOnce) {
    const folder here;
    const auto log = here.file("signals");
    process running(dibs_on(here, {"run", "k", child_program(), "signals", log}));
    ASSERT_TRUE(eventually([&] { return exists(log); })) << running.err();
    std::vector<int> sent;
    for (const int number : {SIGHUP,
                             SIGQUIT,
                             SIGUSR1,
                             SIGALRM,
                             SIGWINCH,
                             SIGCONT,
                             SIGTSTP,
                             SIGPROF,
                             SIGRTMIN + 3,
                             SIGTERM,
                             SIGUSR2}) {
        running.signal(number);
        sent.push_back(number);
        ASSERT_TRUE(eventually([&] { return times(numbers_in(log), number) == 1; })) << number;
    }
    EXPECT_EQ(running.wait().status, 0);
    EXPECT_EQ(numbers_in(log), sent);
}

TEST(RunSignals, ASecondTermKills) {
    const folder here;
    const auto log = here.file("signals");
    process running(dibs_on(here, {"run", "k", child_program(), "signals", log}));
    ASSERT_TRUE(eventually([&] { return exists(log); })) << running.err();
    EXPECT_TRUE(eventually([&] {
        if (running.ended()) {
            return true;
        }
        ::kill(running.id(), SIGTERM);
        return false;
    }));
    EXPECT_EQ(running.wait().status, 128 + SIGKILL);
    EXPECT_EQ(numbers_in(log), std::vector<int>{SIGTERM});
    EXPECT_EQ(run_dibs(here, {"run", "k", "true"}).status, 0);
}

TEST(RunSignals, OneTermLeavesTheChildItsTime) {
    const folder here;
    process running(dibs_on(
        here,
        {"run",
         "k",
         "sh",
         "-c",
         "trap 'sleep 1; echo cleaned; exit 9' TERM; echo ready; while :; do sleep 0.05; done"}));
    ASSERT_TRUE(eventually([&] { return running.out() == "ready\n"; })) << running.err();
    running.signal(SIGTERM);
    const auto found = running.wait();
    EXPECT_EQ(found.status, 9);
    EXPECT_EQ(found.out, "ready\ncleaned\n");
}

/// The state of a process as ps shows it; 0: there is none.
char state_of(const std::string& pid) {
    const auto text = read_file("/proc/" + pid + "/stat");
    const auto name_end = text.rfind(')');
    return name_end == std::string::npos ? '\0' : text.at(name_end + 2);
}

TEST(RunSignals, AStoppedChildEndsToo) {
    const folder here;
    for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) {
        process running(dibs_on(here, {"run", "k", "sh", "-c", "echo $$; kill -STOP $$"}));
        ASSERT_TRUE(eventually([&] {
            const auto said = running.out();
            return said.ends_with("\n") && state_of(said.substr(0, said.size() - 1)) == 'T';
        })) << running.err();
        running.signal(number);
        const bool ended = eventually([&] { return running.ended(); });
        EXPECT_TRUE(ended) << number;
        if (!ended) {
            running.signal(SIGCONT);
        }
        EXPECT_EQ(running.wait().status, 128 + number);
    }
}

TEST(RunSignals, TheWholeGroupIsReached) {
    const folder here;
    process running(dibs_on(here, {"run", "k", "sh", "-c", "sleep 300 & echo $!; wait"}));
    ASSERT_TRUE(eventually([&] { return running.out().find('\n') != std::string::npos; }))
        << running.err();
    const auto member = std::stoi(running.out());
    running.signal(SIGTERM);
    EXPECT_EQ(running.wait().status, 128 + SIGTERM);
    EXPECT_TRUE(eventually([&] { return !is_running(member); }));
}

}  // namespace
}  // namespace dibs::testing
