// SPDX-License-Identifier: Apache-2.0
// `dibs run` typed at a terminal: Ctrl-C once and twice, a child that reads, and job control.
#include "screen.hpp"
#include "support.hpp"
#include "support/places.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <string>

namespace dibs::testing {
namespace {

const std::string ctrl_c = "\x03";
const std::string ctrl_z = "\x1A";

TEST(RunTerminal, OneCtrlCReachesTheChildOnceAndItMayCleanUp) {
    const folder here;
    screen user;
    process running(at(user, dibs_on(here, {"run", "k", child_program(), "sleepy", "300"})));
    ASSERT_TRUE(user.shows("ready")) << user.seen();
    user.type(ctrl_c);
    EXPECT_TRUE(user.shows("clean\r\n")) << user.seen();
    EXPECT_EQ(running.wait().status, 130);
    EXPECT_EQ(user.seen().find("twice"), std::string::npos);
    EXPECT_EQ(run_dibs(here, {"run", "k", "true"}).status, 0);
}

TEST(RunTerminal, ASecondCtrlCKills) {
    const folder here;
    screen user;
    process running(at(user, dibs_on(here, {"run", "k", child_program(), "sleepy", "100000"})));
    ASSERT_TRUE(user.shows("ready")) << user.seen();
    user.type(ctrl_c);
    ASSERT_TRUE(user.shows("cleaning")) << user.seen();
    EXPECT_TRUE(eventually([&] {
        if (!running.ended()) {
            user.type(ctrl_c);
        }
        return running.ended();
    }));
    EXPECT_EQ(running.wait().status, 128 + SIGKILL);
    EXPECT_EQ(run_dibs(here, {"run", "k", "true"}).status, 0);
}

TEST(RunTerminal, AChildThatReadsGetsTheTerminalAndTheShellGetsItBack) {
    const folder here;
    screen user;
    auto how = dibs_on(here,
                       {"-c",
                        std::string(tests::places::command) + " run k " + child_program() +
                            " read; " + child_program() + " read"});
    how.program = "/bin/sh";
    process running(at(user, how));
    user.type("first\n");
    EXPECT_TRUE(user.shows("read: first")) << user.seen();
    user.type("second\n");
    EXPECT_TRUE(user.shows("read: second")) << user.seen();
    EXPECT_EQ(running.wait().status, 0);
}

TEST(RunTerminal, ASkipIsToldOnATerminal) {
    const folder here;
    screen user;
    process holder(dibs_on(here, {"run", "k", "sh", "-c", "echo ready; exec sleep 300"}));
    ASSERT_TRUE(eventually([&] { return !holder.out().empty(); })) << holder.err();
    process running(at(user, dibs_on(here, {"run", "k", "true"})));
    EXPECT_TRUE(user.shows("is held by")) << user.seen();
    EXPECT_EQ(running.wait().status, 75);
    holder.signal(SIGTERM);
    holder.wait();
}

TEST(RunTerminal, CtrlZStopsTheJobAndFgContinuesIt) {
    if (!exists("/bin/bash")) {
        GTEST_SKIP() << "no bash on this machine";
    }
    const folder here;
    screen user;
    auto how = dibs_on(here, {"--norc", "--noprofile", "-i"});
    how.program = "/bin/bash";
    how.variables["PS1"] = "prompt> ";
    how.variables["TERM"] = "dumb";
    process shell(at(user, how));
    ASSERT_TRUE(user.shows("prompt> ")) << user.seen();
    user.forget();
    user.type(std::string(tests::places::command) +
              " run k sh -c 'echo up and running; read x; echo got $x'\n");
    ASSERT_TRUE(user.shows("\nup and running")) << user.seen();
    user.type(ctrl_z);
    ASSERT_TRUE(user.shows("Stopped")) << user.seen();
    user.forget();
    user.type("fg\n");
    ASSERT_TRUE(user.shows("fg\r\n")) << user.seen();
    user.type("back\n");
    EXPECT_TRUE(user.shows("got back")) << user.seen();
    user.type("exit 5\n");
    EXPECT_EQ(shell.wait().status, 5) << user.seen();
}

}  // namespace
}  // namespace dibs::testing
