// SPDX-License-Identifier: Apache-2.0
// What `dibs run` exits with, and what the status file says beside it.
#include "support.hpp"
#include "support/places.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <vector>

namespace dibs::testing {
namespace {

TEST(RunStatus, PassesTheChildsOwnStatusOn) {
    const folder here;
    for (const int status : {0, 1, 2, 7, 64, 69, 75, 79, 100, 124, 126, 127, 128, 254, 255}) {
        const auto found = run_dibs(
            here,
            {"run", "--status-file", "s.json", "k", "sh", "-c", "exit " + std::to_string(status)});
        EXPECT_EQ(found.status, status) << found.err;
        EXPECT_EQ(found.err, "");
        EXPECT_NE(read_file(here.file("s.json")).find("\"outcome\": \"child\""), std::string::npos);
    }
}

TEST(RunStatus, TellsASignalAsAShellDoes) {
    const folder here;
    for (const int number : {SIGKILL, SIGTERM, SIGSEGV, SIGPIPE, SIGINT, SIGUSR1}) {
        const auto found =
            run_dibs(here, {"run", "k", "sh", "-c", "kill -" + std::to_string(number) + " $$"});
        EXPECT_EQ(found.status, 128 + number) << found.err;
    }
}

TEST(RunStatus, TellsWhatCannotBeExecutedAndGivesTheKeyBack) {
    const folder here;
    write_file(here.file("plain"), "#!/bin/sh\n");
    write_file(here.file("shebang"), "#!/no/such/interpreter\n");
    ASSERT_EQ(::system(("chmod +x " + here.file("shebang")).c_str()), 0);
    const struct {
        std::string command;
        int status;
    } cases[] = {{"no-such-command", 127},
                 {here.file("missing"), 127},
                 {"", 127},
                 {here.file("plain"), 126},
                 {here.path(), 126},
                 {"/etc/passwd/x", 127},
                 {here.file("shebang"), 127}};
    for (const auto& one : cases) {
        const auto found = run_dibs(
            here, {"run", "--ttl", "1h", "--status-file", "s.json", "k", "--", one.command});
        EXPECT_EQ(found.status, one.status) << one.command << ": " << found.err;
        EXPECT_NE(read_file(here.file("s.json")).find("\"outcome\": \"not_started\""),
                  std::string::npos);
    }
    EXPECT_EQ(run_dibs(here, {"run", "k", "true"}).status, 0);
}

TEST(RunStatus, SaysWhyAScriptCannotBeExecuted) {
    const folder here;
    write_file(here.file("no-shebang"), "echo x\n");
    write_file(here.file("shebang"), "#!/no/such/interpreter\n");
    ASSERT_EQ(
        ::system(("chmod +x " + here.file("no-shebang") + " " + here.file("shebang")).c_str()), 0);
    const auto first = run_dibs(here, {"run", "k", here.file("no-shebang")});
    EXPECT_EQ(first.status, 126);
    EXPECT_NE(first.err.find("#!/bin/sh"), std::string::npos) << first.err;
    const auto second = run_dibs(here, {"run", "k", here.file("shebang")});
    EXPECT_EQ(second.status, 127);
    EXPECT_NE(second.err.find("interpreter"), std::string::npos) << second.err;
}

TEST(RunStatus, WithoutDescriptorsIs71OrAStoresTroubleAndNothingRuns) {
    const folder here;
    ASSERT_EQ(run_dibs(here, {"run", "k", "true"}).status, 0);
    bool was_71 = false;
    // Each number fails at another place, up to the one that suffices.
    for (int files = 5; files < 64; ++files) {
        auto how = dibs_on(here,
                           {"-c",
                            "ulimit -n " + std::to_string(files) + "; exec " +
                                tests::places::command + " run --status-file s.json k touch ran"});
        how.program = "/bin/sh";
        const auto found = process(how).wait();
        if (found.status == 0) {
            EXPECT_TRUE(exists(here.file("ran"))) << files;
            break;
        }
        EXPECT_FALSE(exists(here.file("ran"))) << files;
        EXPECT_TRUE(found.status == 71 || found.status == 69 || found.status == 78)
            << files << ": " << found.status << " " << found.err;
        was_71 = was_71 || found.status == 71;
        EXPECT_NE(found.err.find("the command was not started"), std::string::npos)
            << files << ": " << found.err;
    }
    EXPECT_TRUE(was_71);
    EXPECT_TRUE(exists(here.file("ran")));
    EXPECT_EQ(run_dibs(here, {"run", "k", "true"}).status, 0);
}

TEST(RunStatus, AnUnusableStoreIsToldWithKeyStoreAndThatNothingRan) {
    const folder here;
    write_file(here.file("text"), "not a database, but long enough to be taken for one\n");
    const auto found = run_dibs(
        here, {"run", "--store", "sqlite:" + here.file("text"), "job", "touch", here.file("ran")});
    EXPECT_EQ(found.status, 78) << found.err;
    for (const auto& part : {std::string("\"job\""),
                             here.file("text"),
                             std::string("name another path"),
                             std::string("the command was not started")}) {
        EXPECT_NE(found.err.find(part), std::string::npos) << found.err;
    }
    EXPECT_FALSE(exists(here.file("ran")));
}

TEST(RunStatus, StopsAtMaxRuntimeWith124) {
    const folder here;
    const auto found = run_dibs(
        here, {"run", "--max-runtime", "300ms", "--status-file", "s.json", "k", "sleep", "100"});
    EXPECT_EQ(found.status, 124) << found.err;
    EXPECT_NE(found.err.find("--max-runtime"), std::string::npos);
    EXPECT_NE(read_file(here.file("s.json")).find("\"outcome\": \"max_runtime\""),
              std::string::npos);
}

TEST(RunStatus, StopsAtMaxHoldWith79AndFreesTheKey) {
    const folder here;
    const auto found = run_dibs(
        here, {"run", "--ttl", "1h", "--grace", "1s", "--max-hold", "300ms", "k", "sleep", "100"});
    EXPECT_EQ(found.status, 79) << found.err;
    EXPECT_NE(found.err.find("--max-hold"), std::string::npos);
    EXPECT_EQ(run_dibs(here, {"run", "k", "true"}).status, 0);
}

TEST(RunStatus, WithoutRenewalStopsBeforeTheLeaseEnds) {
    const folder here;
    const auto from = boottime_ns();
    const auto found = run_dibs(here,
                                {"run",
                                 "--ttl",
                                 "1s",
                                 "--no-renew",
                                 "k",
                                 child_program(),
                                 "beat",
                                 here.file("b"),
                                 "stubborn"});
    EXPECT_EQ(found.status, 79) << found.err;
    const auto beats = read_beats(here.file("b"));
    ASSERT_FALSE(beats.empty());
    EXPECT_LT(beats.back().boottime_ns, beats.front().boottime_ns + 1'000'000'000);
    EXPECT_GT(beats.front().boottime_ns, from);
    for (const auto* part : {"\"k\"", "fence", "store", "--no-renew"}) {
        EXPECT_NE(found.err.find(part), std::string::npos) << found.err;
    }
}

TEST(RunStatus, IsRenewedForLongerThanItsTtl) {
    const folder here;
    EXPECT_EQ(run_dibs(here, {"run", "--ttl", "1s", "k", "sleep", "3"}).status, 0);
}

TEST(RunStatus, TheStatusFileTellsEverything) {
    const folder here;
    ASSERT_EQ(
        run_dibs(here,
                 {"run", "--status-file", "s.json", "job", "sh", "-c", "echo $DIBS_FENCE > fence"})
            .status,
        0);
    const auto text = read_file(here.file("s.json"));
    auto fence = read_file(here.file("fence"));
    fence.pop_back();
    for (const auto& part : {std::string("\"outcome\": \"child\""),
                             std::string("\"status\": 0"),
                             std::string("\"key\": \"job\""),
                             "\"fence\": " + fence,
                             std::string("\"holder\": null"),
                             std::string("\"started\": \"2"),
                             std::string("\"ended\": \"2"),
                             std::string("\"store\": \"sqlite:")}) {
        EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
    }
}

}  // namespace
}  // namespace dibs::testing
