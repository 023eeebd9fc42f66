// SPDX-License-Identifier: Apache-2.0
// What the command makes of whatever lies at the path of a store, or does not: one clear line, a
// documented status, nothing started, and no store made by looking.
#include "screen.hpp"
#include "support.hpp"
#include "support/places.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace dibs::testing {
namespace {

namespace fs = std::filesystem;
using json = nlohmann::json;

void expect_one_line(const outcome& found, int status, const std::string& part) {
    EXPECT_EQ(found.status, status) << found.err;
    EXPECT_NE(found.err.find(part), std::string::npos) << part << " in " << found.err;
    EXPECT_EQ(std::count(found.err.begin(), found.err.end(), '\n'), 1) << found.err;
    EXPECT_EQ(found.out, "");
}

std::vector<std::vector<std::string>> acquiring_commands() {
    return {{"run", "k", "sh", "-c", "echo started"},
            {"once", "job", "--slot", "s", "sh", "-c", "echo started"},
            {"elect", "k", "sh", "-c", "echo started"},
            {"acquire", "k"},
            {"hold", "k", "--reason", "r", "--for", "1h"}};
}

TEST(StorePlace, LookingMakesNoStore) {
    const folder here;
    for (const auto& words : looking_commands()) {
        expect_one_line(run_dibs(here, words), 69, here.file("locks.db"));
        auto elsewhere = dibs_on(here, words);
        elsewhere.variables["DIBS_STORE"] = "sqlite:missing/folder/locks.db";
        expect_one_line(process(elsewhere).wait(), 69, here.file("missing/folder"));
    }
    const auto doctor = run_dibs(here, {"doctor"});
    EXPECT_EQ(doctor.status, 1);
    EXPECT_NE(doctor.out.find("no store at this path"), std::string::npos) << doctor.out;
    EXPECT_TRUE(fs::is_empty(here.path()));
}

TEST(StorePlace, LookingTurnsNoEmptyFileIntoAStore) {
    const folder here;
    write_file(here.file("locks.db"), "");
    for (const auto& words : looking_commands()) {
        expect_one_line(run_dibs(here, words), 69, "no store at this path");
    }
    EXPECT_EQ(fs::file_size(here.file("locks.db")), 0U);
    EXPECT_EQ(run_dibs(here, {"run", "k", "true"}).status, 0);
}

TEST(StorePlace, AListingOfTheDefaultStoreThatNobodyHasMadeIsEmpty) {
    if (::geteuid() != 0) {
        GTEST_SKIP() << "becoming a user without a store takes root";
    }
    const folder here;
    ASSERT_EQ(::chmod(here.path().c_str(), 0777), 0);
    const auto as_user = [&](std::vector<std::string> words) {
        launch how;
        how.words = std::move(words);
        how.user = 65'534;
        how.cwd = "/";
        how.variables["XDG_STATE_HOME"] = here.file("state");
        how.variables["HOME"] = here.path();
        return how;
    };
    if (process(as_user({"version"})).wait().status != 0) {
        GTEST_SKIP() << "another user cannot execute the built command here";
    }
    const auto text = process(as_user({"ls"})).wait();
    EXPECT_EQ(text.status, 0) << text.err;
    EXPECT_EQ(text.out + text.err, "");
    const auto machine = process(as_user({"ls", "--json"})).wait();
    EXPECT_EQ(machine.status, 0) << machine.err;
    EXPECT_EQ(json::parse(machine.out), json::array());
    for (const auto& words : looking_commands()) {
        if (words.front() != "ls") {
            expect_one_line(process(as_user(words)).wait(), 69, "is not made yet");
        }
    }
    const auto doctor = process(as_user({"doctor"})).wait();
    EXPECT_EQ(doctor.status, 0) << doctor.out;
    EXPECT_NE(doctor.out.find("is not made yet"), std::string::npos) << doctor.out;
    EXPECT_FALSE(exists(here.file("state")));

    screen user;
    process shown(at(user, as_user({"ls"})));
    EXPECT_TRUE(user.shows("is not made yet")) << user.seen();
    EXPECT_EQ(shown.wait().status, 0);
}

TEST(StorePlace, AcquiringMakesTheFileAndNotItsFolder) {
    for (const auto& words : acquiring_commands()) {
        const folder here;
        auto how = dibs_on(here, words);
        how.variables["DIBS_STORE"] = "sqlite:missing/folder/locks.db";
        expect_one_line(process(how).wait(), 69, here.file("missing/folder"));
        EXPECT_TRUE(fs::is_empty(here.path()));
        EXPECT_EQ(run_dibs(here, words).err, "") << "a crontab gets no mail";
        EXPECT_TRUE(exists(here.file("locks.db")));
    }
}

TEST(StorePlace, ANewFileIsToldAtATerminalOnce) {
    const folder here;
    const std::string told = "a new store";
    {
        screen user;
        process running(at(user, dibs_on(here, {"run", "k", "sh", "-c", "echo first"})));
        EXPECT_TRUE(user.shows(told)) << user.seen();
        EXPECT_NE(user.seen().find(here.file("locks.db")), std::string::npos) << user.seen();
        EXPECT_EQ(running.wait().status, 0);
    }
    screen user;
    process running(at(user, dibs_on(here, {"run", "k", "sh", "-c", "echo second"})));
    EXPECT_TRUE(user.shows("second")) << user.seen();
    EXPECT_EQ(running.wait().status, 0);
    EXPECT_EQ(user.seen().find(told), std::string::npos) << user.seen();
}

TEST(StorePlace, AnEmptyAnswerNamesTheStoreAtATerminal) {
    const folder here;
    ASSERT_EQ(run_dibs(here, {"run", "k", "true"}).status, 0);
    const std::vector<std::vector<std::string>> questions{
        {"ls"}, {"ls", "nobody"}, {"runs"}, {"runs", "nobody"}};
    for (const auto& words : questions) {
        const auto elsewhere = run_dibs(here, words);
        EXPECT_EQ(elsewhere.status, 0);
        EXPECT_EQ(elsewhere.out + elsewhere.err, "") << words.front();

        screen user;
        process shown(at(user, dibs_on(here, words)));
        EXPECT_TRUE(user.shows("in " + here.store())) << words.front() << user.seen();
        EXPECT_EQ(shown.wait().status, 0);
    }
}

TEST(StorePlace, AUrlMayForbidThatTheFileIsMade) {
    const folder here;
    auto how = dibs_on(here, {"run", "k", "sh", "-c", "echo started"});
    how.variables["DIBS_STORE"] = here.store() + "?create=no";
    const auto forbidden = process(how).wait();
    expect_one_line(forbidden, 69, "no store at this path");
    EXPECT_NE(forbidden.err.find("unless the URL says create=no"), std::string::npos)
        << forbidden.err;
    how.variables["DIBS_STORE"] = here.store() + "?create=perhaps";
    expect_one_line(process(how).wait(), 78, "create is yes or no");
    EXPECT_TRUE(fs::is_empty(here.path()));
    EXPECT_EQ(run_dibs(here, {"acquire", "k"}).status, 0);
    how.words = {"ls"};
    how.variables["DIBS_STORE"] = here.store() + "?synchronous=full";
    const auto listed = process(how).wait();
    EXPECT_EQ(listed.status, 0) << listed.err;
    EXPECT_NE(listed.out.find("k"), std::string::npos);
}

TEST(StorePlace, APathAloneIsToldToBeWrittenAsAUrl) {
    const folder here;
    for (const auto& path : {std::string{"./locks.db"}, here.file("locks.db")}) {
        expect_one_line(
            run_dibs(here, {"run", "--store", path, "k", "true"}), 78, "write sqlite:FILE");
    }
    EXPECT_TRUE(fs::is_empty(here.path()));
}

TEST(StorePlace, WhatIsNoStoreIsRefusedAndLeftAsItIs) {
    const folder here;
    fs::create_directory(here.file("folder"));
    ASSERT_EQ(::mkfifo(here.file("fifo").c_str(), 0600), 0);
    fs::create_symlink(here.file("nowhere"), here.file("link"));
    std::mt19937 bits{7};
    std::string random;
    for (int byte = 0; byte < 8192; ++byte) {
        random += static_cast<char>(bits());
    }
    write_file(here.file("random"), random);
    write_file(here.file("text"), "127.0.0.1 localhost\n");
    const struct {
        const char* name;
        int status;
        const char* says;
    } cases[] = {{"folder", 78, "folder"},
                 {"fifo", 78, "not a regular file"},
                 {"link", 69, "nowhere"},
                 {"random", 78, "not a database"},
                 {"text", 78, "not a database"}};
    auto commands = acquiring_commands();
    commands.push_back({"ls"});
    for (const auto& one : cases) {
        for (const auto& words : commands) {
            auto how = dibs_on(here, words);
            how.variables["DIBS_STORE"] = "sqlite:" + here.file(one.name);
            expect_one_line(process(how).wait(), one.status, one.says);
        }
        auto doctor = dibs_on(here, {"doctor", "--json"});
        doctor.variables["DIBS_STORE"] = "sqlite:" + here.file(one.name);
        const auto found = process(doctor).wait();
        EXPECT_EQ(found.status, 1);
        const auto first = json::parse(found.out).front();
        EXPECT_EQ(first["state"], "problem");
        EXPECT_NE(first["what"].get<std::string>().find(one.says), std::string::npos) << first;
    }
    EXPECT_EQ(read_file(here.file("random")), random);
    EXPECT_EQ(read_file(here.file("text")), "127.0.0.1 localhost\n");
    EXPECT_FALSE(exists(here.file("nowhere")));
}

TEST(StorePlace, RunningOutOfDescriptorsIsToldAsThat) {
    const folder here;
    bool worked = false;
    int limit = 4;
    for (; limit < 64 && !worked; limit += 4) {
        auto how =
            dibs_on(here,
                    {"-c",
                     "ulimit -n " + std::to_string(limit) + "; exec " +
                         std::string(tests::places::command) + " run k sh -c 'echo started'"});
        how.program = "/bin/sh";
        const auto found = process(how).wait();
        worked = found.status == 0;
        if (!worked) {
            EXPECT_TRUE(found.status == 69 || found.status == 71) << limit << ": " << found.err;
            EXPECT_NE(found.err.find("open files"), std::string::npos)
                << limit << ": " << found.err;
            EXPECT_EQ(found.out, "") << limit;
        }
    }
    EXPECT_TRUE(worked);
    EXPECT_GT(limit, 8) << "the shell did not take the limit";
}

// --- a file that is taken away under a running command -------------------------------------------

void expect_told_at_the_end(const std::vector<std::string>& before_command,
                            const std::function<void(const std::string& path)>& take_away) {
    const folder here;
    ASSERT_EQ(::mkfifo(here.file("gate").c_str(), 0600), 0);
    auto words = before_command;
    words.insert(words.end(),
                 {"--status-file",
                  here.file("s.json"),
                  "--",
                  "sh",
                  "-c",
                  "echo ready; read x < gate; exit 0"});
    process running(dibs_on(here, words));
    ASSERT_TRUE(eventually([&] { return running.out() == "ready\n"; })) << running.err();
    take_away(here.file("locks.db"));
    write_file(here.file("gate"), "go\n");
    const auto found = running.wait();
    EXPECT_EQ(found.status, 79) << found.err;
    EXPECT_NE(found.err.find("moved, removed or replaced"), std::string::npos) << found.err;
    EXPECT_NE(found.err.find(here.file("locks.db")), std::string::npos) << found.err;
    EXPECT_NE(read_file(here.file("s.json")).find("\"outcome\": \"lost\""), std::string::npos);
}

TEST(StorePlace, AFileThatIsTakenAwayIsToldWhenTheCommandEnds) {
    const std::vector<std::vector<std::string>> commands = {
        {"run", "--ttl", "1h", "k"}, {"once", "job", "--slot", "s", "--ttl", "1h"}};
    for (const auto& words : commands) {
        expect_told_at_the_end(words, [](const std::string& path) { fs::remove(path); });
        expect_told_at_the_end(words,
                               [](const std::string& path) { fs::rename(path, path + ".old"); });
        expect_told_at_the_end(words, [](const std::string& path) {
            const folder other;
            ASSERT_EQ(run_dibs(other, {"acquire", "k"}).status, 0);
            fs::remove(path + "-wal");
            fs::remove(path + "-shm");
            for (const auto* part : {"-wal", "-shm", ""}) {
                fs::copy_file(other.file("locks.db") + part, path + ".new" + part);
            }
            fs::rename(path + ".new", path);
        });
    }
}

TEST(StorePlace, AFileThatIsTakenAwayStopsTheCommandAtTheNextRenewal) {
    const folder here;
    process running(
        dibs_on(here, {"run", "--ttl", "9s", "k", "sh", "-c", "echo ready; exec sleep 300"}));
    ASSERT_TRUE(eventually([&] { return running.out() == "ready\n"; })) << running.err();
    const auto from = boottime_ns();
    fs::rename(here.file("locks.db"), here.file("elsewhere.db"));
    const auto found = running.wait();
    EXPECT_EQ(found.status, 79) << found.err;
    EXPECT_NE(found.err.find("moved, removed or replaced"), std::string::npos) << found.err;
    EXPECT_EQ(found.err.find("no renewal succeeded"), std::string::npos) << found.err;
    EXPECT_LT(boottime_ns() - from, 6'500'000'000) << "well before the deadline";
}

}  // namespace
}  // namespace dibs::testing
