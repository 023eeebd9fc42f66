// SPDX-License-Identifier: Apache-2.0
// The demos on a real Redis server, and what is shown of keys of others there.
#include "support/places.hpp"
#include "support/redis_server.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace dibs::testing {

namespace {

struct played {
    int status = -1;
    std::string told;
};

played run(const std::string& words) {
    const auto line = std::string{tests::places::command} + " " + words + " 2>&1";
    played found;
    auto* output = ::popen(line.c_str(), "r");
    std::array<char, 4096> some{};
    while (std::fgets(some.data(), some.size(), output) != nullptr) {
        found.told += some.data();
    }
    found.status = ::pclose(output);
    return found;
}

played play(const std::string& words) {
    return run("demo " + words);
}

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST(RedisDemo, ComeAboutAsTold) {
    const redis_server server;
    for (const auto& [name, proof] :
         {std::pair<std::string, std::string>{"duplicate-jobs", "e-mails sent: 1"},
          {"watchdog --fast", "at work at the same time: 2"},
          {"blind-release --fast", "1 key deleted, B's"},
          {"no-expiry --fast", "nobody is there, and the lock is held"},
          {"fencing --fast", "REFUSED"}}) {
        const auto found = play(name + " --store " + server.url());
        EXPECT_EQ(found.status, 0) << name << "\n" << found.told;
        EXPECT_TRUE(has(found.told, proof)) << name << "\n" << found.told;
    }
    EXPECT_EQ(
        server.ask(
            {"EVAL",
             "local n = 0 for _, k in ipairs(redis.call('KEYS', '*')) do "
             "if redis.call('PTTL', k) < 0 and k ~= ':~dibs=fence' then n = n + 1 end end return n",
             "0"}),
        "0")
        << "keys that never expire";
}

TEST(RedisShow, TellsWhyAKeyCannotBeRead) {
    const redis_server server;
    ASSERT_EQ(server.ask({"RPUSH", "list", "x"}), "1");
    const auto told = run("show list --store " + server.url());
    EXPECT_EQ(WEXITSTATUS(told.status), 64);
    EXPECT_TRUE(has(told.told, "holds something that is no lock")) << told.told;
}

TEST(RedisShow, SaysWhatIsWrongOnce) {
    const redis_server server;
    ASSERT_EQ(server.ask({"RPUSH", "list", "x"}), "1");
    for (const auto* words : {"show list", "break list --fence 1 --yes", "check list --fence 1"}) {
        const auto found = run(std::string{words} + " --store " + server.url());
        EXPECT_EQ(WEXITSTATUS(found.status), 64) << words;
        EXPECT_TRUE(has(found.told, "wrong kind of value\n")) << words << ": " << found.told;
    }
}

TEST(RedisShow, TellsOfALockOfAnotherProgramThatNeverEndsByTime) {
    const redis_server server;
    const auto there = " --store " + server.url();
    ASSERT_EQ(server.ask({"SETNX", "lock:report", "1"}), "1");
    const auto shown = run("show lock:report" + there).told;
    EXPECT_TRUE(has(shown, "by that program alone: never by time")) << shown;
    for (const auto* command : {"show lock:report --json", "ls lock:report --json"}) {
        const auto told = run(command + there).told;
        EXPECT_TRUE(has(told, "\"remaining_ms\": null")) << told;
    }
    const auto seen = run("watch lock:report" + there + " & sleep 0.5; kill $!; wait $!").told;
    EXPECT_TRUE(has(seen, "granted     lock:report  another program\n")) << seen;
}

TEST(RedisOnce, ALockOfAnotherProgramIsNoRun) {
    const redis_server server;
    ASSERT_EQ(server.ask({"SET", "job@s", "a token of somebody's"}), "OK");
    const auto once = "once job --slot s --store " + server.url() + " ";
    const auto found = run(once + "-- echo ran");
    EXPECT_EQ(WEXITSTATUS(found.status), 75) << found.told;
    EXPECT_TRUE(has(found.told, "\"job@s\" is not being run; held by another program"))
        << found.told;
    EXPECT_EQ(WEXITSTATUS(run(once + "--held-code 0 -q -- echo ran").status), 0);
    EXPECT_EQ(server.ask({"DEL", "job@s"}), "1");
    EXPECT_EQ(run(once + "-- echo ran").told, "ran\n");
}

TEST(RedisTtl, ADefaultThatTheStoreDoesNotGrantIsTold) {
    const redis_server server;
    const auto told = run("acquire k --store '" + server.url() + "?guarantee=strict&max_ttl=3s'");
    EXPECT_EQ(WEXITSTATUS(told.status), 64);
    EXPECT_TRUE(has(told.told, "--ttl is needed here")) << told.told;
    EXPECT_TRUE(has(told.told, "50 ms to 3.0 s")) << told.told;
}

TEST(RedisStrict, WhoAsksBeforeAnythingIsGrantedIsToldWhenToAskAgain) {
    const redis_server server;
    const auto strict = "k --ttl 3s --store '" + server.url() + "?guarantee=strict&max_ttl=3s'";
    const auto told = run("run " + strict + " true");
    EXPECT_EQ(WEXITSTATUS(told.status), 69);
    EXPECT_TRUE(has(told.told, "; it grants again in ")) << told.told;
    EXPECT_FALSE(has(told.told, "ask again")) << "told twice: " << told.told;
    EXPECT_EQ(WEXITSTATUS(run("run --wait 20s " + strict + " true").status), 0);
}

TEST(RedisDemo, TwoAtOnceDoNotMeet) {
    const redis_server server;
    const auto line =
        std::string{tests::places::command} + " demo duplicate-jobs --store " + server.url();
    const auto both =
        "(" + line + ") & first=$!; " + line + "; second=$?; wait $first && exit $second";
    EXPECT_EQ(std::system(both.c_str()), 0);
}

TEST(RedisDemo, FailoverGivesTheLockTwiceAndTheRowRefusesTheFirst) {
    const auto found = play("failover");
    EXPECT_EQ(found.status, 0) << found.told;
    EXPECT_TRUE(has(found.told, "still believes to have it: yes")) << found.told;
    EXPECT_TRUE(has(found.told, "guarded row REFUSED")) << found.told;
}

}  // namespace dibs::testing
