// SPDX-License-Identifier: Apache-2.0
// Goal: whoever waits at a terminal sees for whom and for how long, in one line that is gone
// afterwards; elsewhere nothing is told. Method: commands at a terminal of the test's own, behind a
// holder.
#include "screen.hpp"
#include "support.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <ostream>
#include <regex>
#include <string>
#include <vector>

namespace dibs::testing {
namespace {

using words = std::vector<std::string>;

const std::string erase = "\r\x1b[K";

std::size_t times(const std::string& text, const std::string& part) {
    std::size_t count = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
        ++count;
    }
    return count;
}

/// Somebody who holds a key until told to go.
class holder {
  public:
    explicit holder(const folder& here, const words& start = {"run", "k"})
        : run_(dibs_on(here, with_command(start))) {
        EXPECT_TRUE(eventually([&] { return run_.out() == "ready\n"; })) << run_.err();
    }
    [[nodiscard]] std::string pid() const { return std::to_string(run_.id()); }
    void go() {
        run_.signal(SIGTERM);
        (void)run_.wait();
    }

  private:
    static words with_command(words start) {
        for (const char* word :
             {"sh", "-c", "echo ready; exec sleep 300", "--password", "hunter2"}) {
            start.emplace_back(word);
        }
        return start;
    }
    process run_;
};

launch at_terminal(const screen& user, const folder& here, const words& given) {
    auto how = at(user, dibs_on(here, given));
    how.variables["TERM"] = "xterm";
    how.variables["TZ"] = "XYZ-3";
    return how;
}

struct waiting_command {
    words given;
    std::string key;
    words held_by;
    std::string shown_afterwards;
};

std::ostream& operator<<(std::ostream& out, const waiting_command& what) {
    return out << what.given.front();
}

class Waiting : public ::testing::TestWithParam<waiting_command> {};

TEST_P(Waiting, IsToldInOneLineThatIsGoneAfterwards) {
    const auto& what = GetParam();
    const folder here;
    screen user;
    holder first(here, what.held_by);
    process waiting(at_terminal(user, here, what.given));
    ASSERT_TRUE(user.shows("waiting for \"" + what.key + "\" (")) << user.seen();
    // Kept up to date.
    ASSERT_TRUE(eventually([&] { return times(user.seen(), erase + "dibs: waiting") >= 3; }))
        << user.seen();
    EXPECT_TRUE(std::regex_search(
        user.seen(),
        std::regex(R"(held by \S+ \(pid )" + first.pid() +
                   R"(, user \S+\) since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d XYZ \([^)]+\), )" +
                   R"(\d+\S* s left, fence \d+: sh -c)")))
        << user.seen();
    EXPECT_EQ(user.seen().find("hunter2"), std::string::npos) << user.seen();
    EXPECT_EQ(user.seen().find('\n'), std::string::npos) << "more than one line: " << user.seen();
    first.go();
    ASSERT_TRUE(user.shows(what.shown_afterwards)) << user.seen();
    EXPECT_EQ(waiting.wait().status, 0) << user.seen();
    const auto seen = user.seen();
    const auto last = seen.rfind(erase);
    ASSERT_NE(last, std::string::npos);
    EXPECT_TRUE(seen.substr(last + erase.size()).starts_with(what.shown_afterwards)) << seen;
}

INSTANTIATE_TEST_SUITE_P(
    Commands,
    Waiting,
    ::testing::Values(
        waiting_command{{"run", "--wait", "5m", "k", "echo", "mine"}, "k", {"run", "k"}, "mine"},
        waiting_command{{"elect", "k", "echo", "mine"}, "k", {"run", "k"}, "mine"},
        waiting_command{{"acquire", "--wait", "forever", "k"}, "k", {"run", "k"}, "dibs1:"},
        waiting_command{{"once",
                         "--slot",
                         "x",
                         "--retries",
                         "3",
                         "--backoff",
                         "1ms",
                         "--wait",
                         "5m",
                         "k",
                         "echo",
                         "mine"},
                        "k@x",
                        {"once", "--slot", "x", "--retries", "3", "--backoff", "1ms", "k"},
                        "mine"}),
    [](const auto& one) { return one.param.given.front(); });

TEST(WaitingLine, FitsTheTerminal) {
    const folder here;
    screen user(60);
    holder first(here);
    process waiting(at_terminal(user, here, {"run", "--wait", "5m", "k", "echo", "mine"}));
    ASSERT_TRUE(user.shows("…")) << user.seen();
    const auto line = user.seen().substr(user.seen().find("dibs: "));
    EXPECT_EQ(line.find("…"), 58U) << line;
    first.go();
    EXPECT_EQ(waiting.wait().status, 0);
}

TEST(WaitingLine, IsGoneWhenTheWaitIsOverOrInterrupted) {
    const folder here;
    holder first(here);
    {
        screen user;
        process waiting(at_terminal(user, here, {"run", "--wait", "1s", "k", "true"}));
        ASSERT_TRUE(user.shows("dibs: waiting")) << user.seen();
        EXPECT_EQ(waiting.wait().status, 75);
        ASSERT_TRUE(user.shows("; waited 1.0 s")) << user.seen();
        EXPECT_NE(user.seen().find(erase + "dibs: \"k\" is held by"), std::string::npos)
            << user.seen();
    }
    screen user;
    process waiting(at_terminal(user, here, {"run", "--wait", "5m", "k", "true"}));
    ASSERT_TRUE(user.shows("dibs: waiting")) << user.seen();
    user.type("\x03");
    EXPECT_EQ(waiting.wait().status, 130);
    EXPECT_TRUE(user.seen().ends_with(erase)) << user.seen();
    first.go();
}

TEST(WaitingLine, TellsOfAHold) {
    const folder here;
    ASSERT_EQ(run_dibs(here, {"hold", "k", "--for", "2h", "--reason", "migration"}).status, 0);
    screen user;
    process waiting(at_terminal(user, here, {"run", "--wait", "5m", "k", "echo", "mine"}));
    ASSERT_TRUE(user.shows("on hold until ")) << user.seen();
    ASSERT_TRUE(user.shows("(1 h 59 min left): migration (by ")) << user.seen();
    ASSERT_EQ(run_dibs(here, {"hold", "k", "--lift"}).status, 0);
    EXPECT_EQ(waiting.wait().status, 0) << user.seen();
}

TEST(WaitingLine, IsNotThereWithoutATerminalAndNotWithQuiet) {
    const folder here;
    holder first(here);
    process plain(dibs_on(here, {"run", "--wait", "5m", "k", "true"}));
    process talkative(dibs_on(here, {"run", "-v", "--wait", "5m", "k", "true"}));
    screen user;
    process quiet(at_terminal(user, here, {"run", "-q", "--wait", "5m", "k", "true"}));
    ASSERT_TRUE(eventually([&] { return !talkative.err().empty(); }));
    EXPECT_TRUE(talkative.err().starts_with("dibs: waiting for \"k\" (")) << talkative.err();
    first.go();
    EXPECT_EQ(quiet.wait().status, 0);
    EXPECT_EQ(user.seen(), "");
    EXPECT_EQ(plain.wait().err, "");
    const auto told = talkative.wait().err;
    EXPECT_EQ(times(told, "waiting for"), 1U) << told;
    EXPECT_EQ(told.find('\r'), std::string::npos) << told;
}

TEST(WaitingLine, OfAKeyThatIsHadAtOnceIsNotShown) {
    const folder here;
    ASSERT_EQ(run_dibs(here, {"run", "k", "true"}).status, 0);
    screen user;
    process waiting(at_terminal(user, here, {"run", "--wait", "5m", "k", "echo", "mine"}));
    EXPECT_EQ(waiting.wait().status, 0);
    EXPECT_TRUE(user.shows("mine"));
    EXPECT_EQ(user.seen(), "mine\r\n");
}

}  // namespace
}  // namespace dibs::testing
