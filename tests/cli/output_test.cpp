// SPDX-License-Identifier: Apache-2.0
// Where output goes, and what becomes of it when it cannot go there.
#include "support.hpp"
#include "support/places.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace dibs::testing {
namespace {

/// `sh -c "$DIBS …"`.
outcome shell(const folder& where, const std::string& script) {
    auto how = dibs_on(where, {"-c", script});
    how.program = "/bin/sh";
    how.variables["DIBS"] = tests::places::command;
    how.cwd = where.path();
    return process(how).wait();
}

TEST(Output, ThatCannotBeWrittenIsNoSuccess) {
    const folder here;
    process holder(dibs_on(here, {"run", "k", "sh", "-c", "echo ready; exec sleep 300"}));
    ASSERT_TRUE(eventually([&] { return !holder.out().empty(); })) << holder.err();
    ASSERT_EQ(shell(here, "\"$DIBS\" once --slot x job true").status, 0);
    for (const char* command : {"ls",
                                "show k",
                                "show k --json",
                                "check k --fence 1 --json",
                                "runs job",
                                "runs job --json",
                                "once job --slot x --dry-run",
                                "watch",
                                "watch --json",
                                "config show",
                                "config show --json",
                                "doctor",
                                "doctor --json",
                                "bench --seconds 1 --callers 1",
                                "completion bash",
                                "completion zsh",
                                "completion fish",
                                "man",
                                "demo watchdog --fast",
                                "demo blind-release --fast",
                                "demo fencing --fast",
                                "ls --json",
                                "version",
                                "version --json",
                                "--version",
                                "--help",
                                "help",
                                "run --help",
                                "ls --help",
                                "demo --help",
                                "demo duplicate-jobs"}) {
        for (const char* nowhere : {">/dev/full", ">&-"}) {
            const auto found = shell(here, std::string("\"$DIBS\" ") + command + " " + nowhere);
            EXPECT_EQ(found.status, 74) << command << " " << nowhere;
            EXPECT_NE(found.err.find("output cannot be written"), std::string::npos) << command;
        }
    }
    holder.signal(SIGTERM);
    holder.wait();
}

TEST(Output, AReaderThatLeavesEndsTheListingQuietly) {
    const folder here;
    const auto found = shell(here, "(\"$DIBS\" --help; echo $? >status) | :");
    EXPECT_EQ(found.status, 0);
    EXPECT_EQ(found.err, "");
}

TEST(StatusFile, LeavesDevicesAndLinksWhatTheyAre) {
    const folder here;
    std::filesystem::create_symlink("/dev/null", here.file("null"));
    std::filesystem::create_symlink("real", here.file("link"));
    std::filesystem::create_symlink("new", here.file("dangling"));
    write_file(here.file("real"), "old");
    for (const char* name : {"null", "link", "dangling"}) {
        EXPECT_EQ(run_dibs(here, {"run", "--status-file", here.file(name), "k", "true"}).status, 0);
        EXPECT_TRUE(std::filesystem::is_symlink(here.file(name))) << name;
    }
    EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
    EXPECT_EQ(read_file(here.file("real")).rfind("{\n", 0), 0U);
    EXPECT_EQ(read_file(here.file("new")).rfind("{\n", 0), 0U);
}

TEST(StatusFile, GoesIntoAPipeThatSomebodyReads) {
    const folder here;
    ASSERT_EQ(::mkfifo(here.file("pipe").c_str(), 0600), 0);
    const auto unread = run_dibs(here, {"run", "--status-file", here.file("pipe"), "k", "true"});
    EXPECT_EQ(unread.status, 0);
    EXPECT_NE(unread.err.find("cannot write"), std::string::npos);
    const auto read = shell(here, "\"$DIBS\" run --status-file pipe k sleep 0.1 & cat pipe; wait");
    EXPECT_NE(read.out.find("\"outcome\": \"child\""), std::string::npos) << read.err;
    EXPECT_TRUE(std::filesystem::is_fifo(here.file("pipe")));
}

TEST(StatusFile, MayBeADescriptor) {
    const folder here;
    const auto told = shell(here, "\"$DIBS\" run --status-fd 3 k sh -c 'exit 5' 3>told; cat told");
    EXPECT_NE(told.out.find("\"status\": 5"), std::string::npos) << told.out << told.err;
    for (const char* number : {"", "-1", "x", "3x", "987654321", "9"}) {
        const auto refused = run_dibs(here, {"run", "--status-fd", number, "k", "touch", "ran"});
        EXPECT_EQ(refused.status, 64) << number;
        EXPECT_NE(refused.err.find("--status-fd"), std::string::npos) << refused.err;
    }
    const auto both = run_dibs(
        here, {"run", "--status-fd", "1", "--status-file", here.file("f"), "k", "touch", "ran"});
    EXPECT_EQ(both.status, 64);
    EXPECT_FALSE(std::filesystem::exists(here.file("ran")));
}

TEST(StatusFile, ThatCannotBeIsAUsageError) {
    const folder here;
    for (const auto& name :
         {std::string(300, 'x'), std::string("no/such/folder"), std::string(".")}) {
        const auto refused = run_dibs(
            here, {"run", "--status-file", here.file(name), "k", "touch", here.file("ran")});
        EXPECT_EQ(refused.status, 64) << name;
        EXPECT_NE(refused.err.find("--status-file"), std::string::npos) << refused.err;
    }
    EXPECT_FALSE(std::filesystem::exists(here.file("ran")));
}

TEST(StatusFile, IsAddedToTheFileOfADescriptor) {
    const folder here;
    for (const char* name : {"/dev/fd/3", "/proc/self/fd/3"}) {
        const auto found =
            shell(here,
                  std::string("exec 3>log; echo before >&3; \"$DIBS\" run --status-file ") + name +
                      " k true; echo after >&3");
        EXPECT_EQ(found.status, 0);
        const auto log = read_file(here.file("log"));
        EXPECT_EQ(log.rfind("before\n{\n", 0), 0U) << log;
        EXPECT_EQ(log.find("after\n"), log.size() - 6) << log;
    }
}

}  // namespace
}  // namespace dibs::testing
