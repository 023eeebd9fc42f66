// SPDX-License-Identifier: Apache-2.0
// What the child gets from its caller, and what it must not get from the wrapper.
#include "support.hpp"
#include "support/places.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <sstream>
#include <string>
#include <vector>

namespace dibs::testing {
namespace {

TEST(RunInheritance, TheChildFindsItsLeaseInTheEnvironment) {
    const folder here;
    auto how = dibs_on(here, {"run", "--ttl", "20s", "job 1", "env"});
    how.variables["DIBS_KEY"] = "outer";
    how.variables["DIBS_FENCE"] = "1";
    how.variables["DIBS_RUN_ID"] = "outer";
    const auto before = boottime_ns();
    const auto found = process(how).wait();
    ASSERT_EQ(found.status, 0) << found.err;
    std::map<std::string, std::string> variables;
    std::istringstream lines(found.out);
    for (std::string line; std::getline(lines, line);) {
        const auto equals = line.find('=');
        EXPECT_TRUE(variables.emplace(line.substr(0, equals), line.substr(equals + 1)).second)
            << line << " twice";
    }
    EXPECT_EQ(variables["DIBS_KEY"], "job 1");
    EXPECT_GT(std::stoull(variables["DIBS_FENCE"]), 1'000'000U);
    EXPECT_EQ(variables["DIBS_TTL_MS"], "20000");
    const auto deadline = std::stoll(variables["DIBS_DEADLINE_BOOTTIME_NS"]);
    EXPECT_GT(deadline, before + 19'000'000'000);
    EXPECT_LT(deadline, boottime_ns() + 20'000'000'000);
    EXPECT_EQ(variables["DIBS_RUN_ID"].size(), 32U);
    EXPECT_EQ(variables["DIBS_STORE"], here.store());
}

TEST(RunInheritance, TheChildSeesOnlyTheCallersDescriptorsAndTheOneThatKeepsTheLease) {
    const folder here;
    const int extra = ::open("/dev/zero", O_RDONLY);
    auto how = dibs_on(here, {"run", "k", child_program(), "descriptors"});
    how.inherited = {extra};
    const auto found = process(how).wait();
    ::close(extra);
    ASSERT_EQ(found.status, 0) << found.err;
    std::istringstream lines(found.out);
    int number = 0;
    std::string target;
    std::vector<int> callers;
    std::vector<std::string> ours;
    while (lines >> number) {
        std::getline(lines >> std::ws, target);
        if (number <= 2 || number == extra) {
            callers.push_back(number);
        } else {
            ours.push_back(target);
        }
    }
    EXPECT_EQ(callers.size(), 4U) << found.out;
    ASSERT_EQ(ours.size(), 1U) << found.out;
    EXPECT_TRUE(ours.front().starts_with(here.path())) << ours.front();
}

TEST(RunInheritance, TheChildCannotWriteWhereTheReportGoes) {
    const folder here;
    for (const std::string start : {"run", "once --slot x"}) {
        auto how =
            dibs_on(here,
                    {"-c",
                     "\"$0\" " + start +
                         " --status-fd 5 k sh -c 'ls -l /proc/self/fd; echo early >&5' 5>told"});
        how.words.emplace_back(tests::places::command);
        how.program = "/bin/sh";
        const auto found = process(how).wait();
        EXPECT_NE(found.status, 0) << "the child could write there";
        EXPECT_EQ(found.out.find("/told"), std::string::npos) << found.out;
        const auto told = read_file(here.file("told"));
        EXPECT_TRUE(told.starts_with("{\n")) << told;
        EXPECT_NE(told.find("\"outcome\": \"child\""), std::string::npos) << told;
    }
    // One of the three that everybody has stays.
    const auto by_stderr =
        run_dibs(here, {"run", "--status-fd", "2", "k", "sh", "-c", "echo mine >&2"});
    EXPECT_EQ(by_stderr.status, 0);
    EXPECT_TRUE(by_stderr.err.starts_with("mine\n{\n")) << by_stderr.err;
}

TEST(RunInheritance, TheChildReadsTheCallersInput) {
    const folder here;
    write_file(here.file("input"), "one\ntwo\n");
    auto how = dibs_on(here, {"run", "k", "cat"});
    how.input = here.file("input");
    EXPECT_EQ(process(how).wait().out, "one\ntwo\n");
}

TEST(RunInheritance, ClosedStandardDescriptorsStayClosed) {
    const folder here;
    const auto found = run_dibs(here, {"run", "k", "true"});
    ASSERT_EQ(found.status, 0);
    auto how =
        dibs_on(here,
                {"-c",
                 "exec 0<&- 1>&- 2>&-; exec " + std::string(tests::places::command) +
                     " run k sh -c 'test ! -e /proc/self/fd/0 && test ! -e /proc/self/fd/2'"});
    how.program = "/bin/sh";
    EXPECT_EQ(process(how).wait().status, 0);
}

TEST(RunInheritance, MaskAndDispositionsAreTheCallers) {
    const folder here;
    auto how = dibs_on(here, {"run", "k", child_program(), "state"});
    how.ignored = {SIGHUP, SIGCHLD};
    how.blocked = {SIGUSR2};
    const auto found = process(how).wait();
    ASSERT_EQ(found.status, 0) << found.err;
    auto plain = how;
    plain.program = child_program();
    plain.words = {"state"};
    const auto direct = process(plain).wait();
    const auto masks = [](const std::string& text) { return text.substr(0, text.find("pid")); };
    EXPECT_EQ(masks(found.out), masks(direct.out));
}

TEST(RunInheritance, TheChildLeadsAGroupOfItsOwnInTheCallersSession) {
    const folder here;
    const auto found = run_dibs(here, {"run", "k", child_program(), "state"});
    int pid = 0;
    int group = 0;
    int session = 0;
    ASSERT_EQ(std::sscanf(found.out.c_str() + found.out.find("pid"),
                          "pid %d group %d session %d",
                          &pid,
                          &group,
                          &session),
              3);
    EXPECT_EQ(pid, group);
    EXPECT_EQ(session, ::getsid(0));
}

TEST(RunInheritance, NoShellLooksAtTheArguments) {
    const folder here;
    const auto found =
        run_dibs(here, {"run", "k", "printf", "%s|", "$(touch ran)", "a b", "*", "'", ""});
    EXPECT_EQ(found.out, "$(touch ran)|a b|*|'||");
    EXPECT_FALSE(exists(here.file("ran")));
}

TEST(RunInheritance, WhatTheChildLeavesBehindGoesOnWithoutTheLease) {
    const folder here;
    const auto found = run_dibs(here,
                                {"run",
                                 "--ttl",
                                 "1h",
                                 "k",
                                 "sh",
                                 "-c",
                                 child_program() + " beat " + here.file("b") + " & exit 4"});
    EXPECT_EQ(found.status, 4) << found.err;
    // The key is free although a process that inherited everything is alive.
    EXPECT_EQ(run_dibs(here, {"run", "k", "true"}).status, 0);
    ASSERT_TRUE(eventually([&] { return !read_beats(here.file("b")).empty(); }));
    const auto left = read_beats(here.file("b")).front().process;
    EXPECT_TRUE(is_running(left));
    ::kill(left, SIGKILL);
}

}  // namespace
}  // namespace dibs::testing
