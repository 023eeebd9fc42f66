// SPDX-License-Identifier: Apache-2.0
// Goal: a server that is not there when a command begins to wait is part of the wait. Method: commands
// on the place of a server that comes later, or never.
#include "support.hpp"
#include "support/redis_server.hpp"
#include "support/relay.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

namespace dibs::testing {
namespace {

using words = std::vector<std::string>;
using clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

words on(const redis_server& server, words given) {
    given.insert(given.begin() + 1, {"--store", server.url()});
    return given;
}

words token_words(const std::string& what) {
    return {"token", what, "k", "--wait", "1m", "--plaintext", "--life", "1m", "--", "echo", "t"};
}

/// Of a server that has been there, at whose place nobody is now.
class AwaitedServer : public ::testing::Test {
  protected:
    AwaitedServer() { server.kill(); }

    folder here;
    redis_server server;
};

class AwaitedServerOf : public AwaitedServer, public ::testing::WithParamInterface<words> {};

TEST_P(AwaitedServerOf, IsWaitedFor) {
    process waits(dibs_on(here, on(server, GetParam())));
    std::this_thread::sleep_for(300ms);
    EXPECT_FALSE(waits.ended()) << waits.err();
    ASSERT_TRUE(server.start());
    const auto told = waits.wait();
    EXPECT_EQ(told.status, 0) << told.err;
    EXPECT_NE(told.out, "");
}

INSTANTIATE_TEST_SUITE_P(
    commands,
    AwaitedServerOf,
    ::testing::Values(
        words{"run", "k", "--wait", "1m", "--", "echo", "ran"},
        words{"elect", "k", "--", "echo", "ran"},
        words{"once", "job", "--slot", "s", "--wait", "1m", "--", "echo", "ran"},
        words{"idempotent", "k", "--fingerprint", "f", "--wait", "1m", "--", "echo", "ran"},
        words{"acquire", "k", "--wait", "1m"},
        token_words("get"),
        token_words("refresh")),
    [](const auto& given) {
        const auto& all = given.param;
        return all.front() == "token" ? all.front() + "_" + all[1] : all.front();
    });

TEST_F(AwaitedServer, IsAFailureWhenTheWaitIsOver) {
    const auto began = clock::now();
    const auto told =
        process(dibs_on(here, on(server, {"run", "k", "--wait", "700ms", "--", "true"}))).wait();
    EXPECT_EQ(told.status, 69);
    EXPECT_NE(told.err.find("\"k\": " + server.url()), std::string::npos) << told.err;
    EXPECT_NE(told.err.find("; waited 700 ms; the command was not started"), std::string::npos)
        << told.err;
    EXPECT_GE(clock::now() - began, 700ms);
}

TEST_F(AwaitedServer, IsAFailureAtOnceForWhoDoesNotWait) {
    const auto began = clock::now();
    EXPECT_EQ(process(dibs_on(here, on(server, {"run", "k", "--", "true"}))).wait().status, 69);
    EXPECT_LT(clock::now() - began, 4s);
}

TEST_F(AwaitedServer, DoesNotHoldUpASignal) {
    for (const words& given :
         {words{"run", "k", "--wait", "1m", "--", "true"}, words{"acquire", "k", "--wait", "1m"}}) {
        process waits(dibs_on(here, on(server, given)));
        std::this_thread::sleep_for(300ms);
        waits.signal(SIGTERM);
        EXPECT_EQ(waits.wait().status, 128 + SIGTERM) << given.front();
    }
}

TEST_F(AwaitedServer, IsNotUsedByWhoWasStoppedForLongerThanTheWait) {
    for (const words& given : {words{"run", "k"},
                               words{"once", "job", "--slot", "s"},
                               words{"idempotent", "i", "--fingerprint", "f"}}) {
        auto whole = on(server, given);
        whole.insert(whole.end(), {"--wait", "1s", "--", "echo", "ran"});
        process waits(dibs_on(here, whole));
        std::this_thread::sleep_for(500ms);
        waits.signal(SIGSTOP);
        ASSERT_TRUE(server.start());
        std::this_thread::sleep_for(3s);
        waits.signal(SIGCONT);
        const auto told = waits.wait();
        EXPECT_EQ(told.status, 69) << given.front();
        EXPECT_EQ(told.out, "");
        EXPECT_NE(told.err.find("; waited 1.0 s"), std::string::npos) << told.err;
        server.kill();
    }
}

TEST_F(AwaitedServer, IsToldOfWhenItStaysAway) {
    process waits(dibs_on(here, on(server, {"run", "k", "--wait", "1m", "--", "echo", "ran"})));
    EXPECT_TRUE(eventually([&] { return waits.err().find("trying on") != std::string::npos; }))
        << waits.err();
    ASSERT_TRUE(server.start());
    EXPECT_EQ(waits.wait().out, "ran\n");
}

TEST_F(AwaitedServer, HasItsWholeTimeForAnAnswerWhenItHasCome) {
    ASSERT_TRUE(server.start());
    relay way{server.socket()};
    way.replies({.delay = 300ms});
    way.cut(true);
    const auto on_the_way = [&](words given) {
        given.insert(given.end(), {"--store", way.url(), "--wait", "20s", "--", "echo", "ran"});
        return dibs_on(here, given);
    };
    process runs(on_the_way({"run", "k"}));
    process once(on_the_way({"once", "job", "--slot", "s"}));
    process idempotent(on_the_way({"idempotent", "i", "--fingerprint", "f"}));
    std::this_thread::sleep_for(5s);  // longer than the store's patience
    way.cut(false);
    for (auto* one : {&runs, &once, &idempotent}) {
        const auto told = one->wait();
        EXPECT_EQ(told.status, 0) << told.err;
        EXPECT_EQ(told.out, "ran\n");
    }
}

TEST_F(AwaitedServer, IsAReplicaUntilItIsPromoted) {
    ASSERT_TRUE(server.start());
    ASSERT_EQ(server.ask({"REPLICAOF", "127.0.0.1", "1"}), "OK");
    const auto at_once = process(dibs_on(here, on(server, {"run", "k", "--", "true"}))).wait();
    EXPECT_EQ(at_once.status, 69);
    EXPECT_NE(at_once.err.find("is a replica"), std::string::npos) << at_once.err;
    process waits(dibs_on(here, on(server, {"run", "k", "--wait", "1m", "--", "echo", "ran"})));
    std::this_thread::sleep_for(500ms);
    EXPECT_FALSE(waits.ended()) << waits.err();
    ASSERT_EQ(server.ask({"REPLICAOF", "NO", "ONE"}), "OK");
    EXPECT_EQ(waits.wait().out, "ran\n");
}

TEST_F(AwaitedServer, IsBusyUntilTheScriptHasEnded) {
    ASSERT_TRUE(server.start());
    ASSERT_EQ(server.ask({"CONFIG", "SET", "busy-reply-threshold", "100"}), "OK");
    std::jthread script([&] { (void)server.ask({"EVAL", "while true do end", "0"}); });
    ASSERT_TRUE(eventually([&] { return server.ask({"PING"}).starts_with("BUSY"); }));
    const auto in_another = server.url("/3");
    process waits(
        dibs_on(here, {"run", "--store", in_another, "k", "--wait", "1m", "--", "echo", "ran"}));
    std::this_thread::sleep_for(500ms);
    EXPECT_FALSE(waits.ended()) << waits.err();
    ASSERT_EQ(server.ask({"SCRIPT", "KILL"}), "OK");
    EXPECT_EQ(waits.wait().out, "ran\n");
}

TEST_F(AwaitedServer, IsNotADatabaseThatItDoesNotHave) {
    ASSERT_TRUE(server.start());
    const auto told =
        process(dibs_on(here,
                        {"run", "--store", server.url("/4711"), "k", "--wait", "1m", "--", "true"}))
            .wait();
    EXPECT_EQ(told.status, 78) << told.err;
}

TEST_F(AwaitedServer, ThatIsNotThereIsToldWithTheKeyByAllThatRunACommand) {
    for (const words& given : {words{"run", "k"},
                               words{"once", "k", "--slot", "s"},
                               words{"idempotent", "k", "--fingerprint", "f"}}) {
        auto whole = on(server, given);
        whole.insert(whole.end(), {"--wait", "100ms", "--", "true"});
        const auto told = process(dibs_on(here, whole)).wait();
        EXPECT_EQ(told.status, 69) << given.front();
        EXPECT_TRUE(told.err.starts_with("dibs: \"k")) << told.err;
        EXPECT_NE(told.err.find("; the command was not started"), std::string::npos) << told.err;
    }
}

TEST_F(AwaitedServer, ThatGoesAwayUnderALeaseIsNamedWithTheLoss) {
    ASSERT_TRUE(server.start());
    process runs(dibs_on(
        here, on(server, {"run", "k", "--ttl", "2s", "--", "sh", "-c", "echo at work; sleep 60"})));
    ASSERT_TRUE(eventually([&] { return runs.out() == "at work\n"; })) << runs.err();
    server.kill();
    const auto told = runs.wait();
    EXPECT_EQ(told.status, 79);
    EXPECT_NE(told.err.find("no renewal succeeded in time (the last renewal: " + server.url()),
              std::string::npos)
        << told.err;
}

TEST_F(AwaitedServer, ThatGoesAwayAgainIsWaitedForByATokenToo) {
    ASSERT_TRUE(server.start());
    const words fetch{"--plaintext", "--life", "1m", "--", "echo", "t"};
    const auto token = [&](words given) {
        given.insert(given.end(), fetch.begin(), fetch.end());
        return dibs_on(here, on(server, given));
    };
    ASSERT_EQ(server.ask({"CONFIG", "SET", "min-replicas-to-write", "1"}), "OK");
    process waits(token({"token", "get", "k", "--wait", "1m"}));
    std::this_thread::sleep_for(6s);
    EXPECT_FALSE(waits.ended()) << waits.err();
    EXPECT_EQ(process(token({"token", "get", "k"})).wait().status, 69);
    EXPECT_EQ(process(token({"token", "get", "k", "--wait", "1s"})).wait().status, 69);
    ASSERT_EQ(server.ask({"CONFIG", "SET", "min-replicas-to-write", "0"}), "OK");
    EXPECT_EQ(waits.wait().out, "t\n");
}

TEST_F(AwaitedServer, IsNotAWrongPassword) {
    ASSERT_TRUE(server.start());
    auto url = server.url();
    url.insert(url.find("//") + 2, "nobody:wrong@");
    const auto began = clock::now();
    const auto told =
        process(dibs_on(here, {"run", "--store", url, "k", "--wait", "1m", "--", "true"})).wait();
    EXPECT_EQ(told.status, 78) << told.err;
    EXPECT_LT(clock::now() - began, 30s);
}

}  // namespace
}  // namespace dibs::testing
