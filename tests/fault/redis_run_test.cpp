// SPDX-License-Identifier: Apache-2.0
// The library and the command on a Redis server behind a bad network, on a server whose wall clock
// is set, and at addresses of several kinds.

#include "redis_command.hpp"
#include "support/places.hpp"

#include <dibs/dibs.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <atomic>
#include <csignal>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace dibs::testing {
namespace {

using namespace std::chrono_literals;
using json = nlohmann::json;

constexpr const char* key = "k";

struct RedisRun : redis_command_test {
    outcome dibs(const std::string& url, const std::vector<std::string>& words) {
        return process(dibs_at(url, words)).wait();
    }
    /// `dibs run` of the program that writes who is at work when.
    [[nodiscard]] launch beating(const std::string& url, std::vector<std::string> options) {
        options.insert(options.begin(), {"run", key});
        options.insert(options.end(), {"--", child_program(), "beat", here.file("beats")});
        return dibs_at(url, options);
    }
    [[nodiscard]] std::size_t fences_seen() const {
        std::size_t found = 0;
        std::uint64_t last = 0;
        for (const auto& one : read_beats(here.file("beats"))) {
            found += one.fence != last ? 1U : 0U;
            last = one.fence;
        }
        return found;
    }
};

}  // namespace

// --- the command ---------------------------------------------------------------------------------

TEST_F(RedisRun, APortThatAcceptsAndNeverAnswersIsAnUnreachableStore) {
    line.swallow_all();
    const auto begun = boottime_ns();
    const auto ended = dibs(line.url(), {"run", key, "--", "touch", here.file("ran")});
    EXPECT_EQ(ended.status, 69) << ended.err;
    EXPECT_FALSE(exists(here.file("ran")));
    EXPECT_LT(boottime_ns() - begun, 10'000'000'000);
}

TEST_F(RedisRun, AHandleThatCannotBeMadeIsToldWithKeyStoreAndReason) {
    ASSERT_EQ(server.ask({"ACL", "SETUSER", "default", "-setrange"}), "OK");
    const auto told = dibs(server.url(), {"acquire", key, "--ttl", "1h"});
    EXPECT_EQ(told.status, 78) << told.err;
    EXPECT_TRUE(told.out.empty()) << told.out;
    for (const auto& word :
         {std::string(key), server.url(), std::string("setrange"), std::string("given back")}) {
        EXPECT_NE(told.err.find(word), std::string::npos) << told.err;
    }
    EXPECT_EQ(server.ask({"EXISTS", key}), "0");
}

TEST_F(RedisRun, WhoAsksAStrictServerTooSoonIsToldWhenToAskAgain) {
    const auto told =
        dibs(server.url("?guarantee=strict&max_ttl=1h"), {"run", key, "--", "/bin/true"});
    EXPECT_EQ(told.status, 69) << told.err;
    EXPECT_NE(told.err.find("it grants again in "), std::string::npos) << told.err;
}

TEST_F(RedisRun, WhatSpeaksAnotherProtocolIsAnUnreachableStore) {
    line.replies({.instead = "HTTP/1.1 400 Bad Request\r\n\r\n"});
    const auto ended = dibs(line.url(), {"run", key, "--", "touch", here.file("ran")});
    EXPECT_EQ(ended.status, 69);
    EXPECT_NE(ended.err.find("no Redis server"), std::string::npos) << ended.err;
    EXPECT_FALSE(exists(here.file("ran")));
}

TEST_F(RedisRun, AHolderThatIsCutOffStopsBeforeTheNextOneStarts) {
    process first{beating(line.url(), {"--ttl", "3s"})};
    ASSERT_TRUE(eventually([&] { return fences_seen() == 1; })) << first.err();
    line.swallow_all();
    process second{beating(server.url(), {"--ttl", "3s", "--wait", "1m"})};
    const auto ended = first.wait();
    EXPECT_EQ(ended.status, 79) << ended.err;
    ASSERT_TRUE(eventually([&] { return fences_seen() == 2; })) << second.err();
    // What it said into the void arrives late, and must not harm who came after.
    const auto held = server.ask({"GET", key});
    line.heal();
    ASSERT_TRUE(eventually([&] { return line.idle(); }));
    EXPECT_EQ(server.ask({"GET", key}), held);
    second.signal(SIGTERM);
    static_cast<void>(second.wait());
    EXPECT_EQ(overlap_in(read_beats(here.file("beats"))), "");
}

TEST_F(RedisRun, AShortCutIsSurvived) {
    process run{dibs_at(line.url(),
                        {"run", key, "--ttl", "6s", "--", "sh", "-c", "echo on; read x < gate"})};
    ASSERT_EQ(::system(("mkfifo " + here.file("gate")).c_str()), 0);
    ASSERT_TRUE(eventually([&] { return server.ask({"EXISTS", key}) == "1"; })) << run.err();
    // Renewals are due every two seconds: some find no connection, and the next one does.
    for (int cut = 0; cut < 3; ++cut) {
        line.cut(true);
        const auto tried = line.connections();
        ASSERT_TRUE(eventually([&] { return line.connections() > tried; })) << "it does not try";
        line.heal();
    }
    write_file(here.file("gate"), "go\n");
    EXPECT_EQ(run.wait().status, 0) << run.err();
    EXPECT_TRUE(eventually([&] { return server.ask({"EXISTS", key}) == "0"; }));
}

TEST_F(RedisRun, WhoseAcquireIsNotAnsweredDoesNotRunAndLeavesNothingForLong) {
    // The server has the script, so that the first thing after the greeting is executed.
    ASSERT_EQ(dibs(line.url(), {"run", key, "--", "true"}).status, 0);
    line.requests({.mutes = "EVALSHA"});
    const auto begun = boottime_ns();
    const auto ended =
        dibs(line.url(), {"run", key, "--ttl", "20s", "--", "touch", here.file("ran")});
    EXPECT_EQ(ended.status, 69) << ended.err;
    EXPECT_FALSE(exists(here.file("ran")));
    EXPECT_LT(boottime_ns() - begun, 12'000'000'000);
    const auto left_ms = std::stol(server.ask({"PTTL", key}));
    EXPECT_TRUE(left_ms == -2 || (left_ms > 0 && left_ms <= 20'000)) << left_ms;
}

// --- the library ---------------------------------------------------------------------------------

TEST_F(RedisRun, AnUnansweredAcquireIsUndoneInTheBackground) {
    client one{line.url()};
    const auto other = one.try_acquire("other");  // kept: its release would be in the way
    ASSERT_TRUE(other);
    for (const bool request_arrives : {true, false}) {
        SCOPED_TRACE(request_arrives ? "the request arrives" : "the request is lost");
        if (request_arrives) {
            line.replies({.drops = true});
        } else {
            line.requests({.drops = true});
        }
        std::error_code error;
        const auto lease = one.try_acquire(key, {.ttl = 10min, .timeout = 300ms}, error);
        EXPECT_FALSE(lease);
        EXPECT_EQ(error, condition::outcome_unknown) << error.message();
        // Where requests arrive, the undo did already.
        line.heal();
        EXPECT_TRUE(eventually([&] {
            return server.ask({"EXISTS", key}) == "0";
        })) << "its ttl is ten minutes";
        std::optional<dibs::lease> again;
        EXPECT_TRUE(eventually([&] {
            again = one.try_acquire(key, {}, error);
            return again.has_value();
        })) << error.message();
        ASSERT_EQ(again->release(), release_outcome::released);
    }
}

TEST_F(RedisRun, RenewalsGoOnUntilTheDeadline) {
    client one{line.url()};
    const auto lease = one.try_acquire(key, {.ttl = 9s, .renew_every = 300ms});
    ASSERT_TRUE(lease);
    // Longer than any number of tries would last, shorter than the lease.
    line.swallow_all();
    const auto tried = line.connections();
    ASSERT_TRUE(eventually([&] { return line.connections() > tried; }, 5s))
        << "the silent connection was not given up";
    line.heal();
    EXPECT_TRUE(eventually([&] { return lease->remaining() > 7500ms; })) << "it was not renewed";
    EXPECT_TRUE(lease->held());
    EXPECT_FALSE(lease->lost().stop_requested());
    // And when nothing gets through, it ends by its own clock before it can end in the store.
    line.swallow_all();
    ASSERT_TRUE(eventually([&] { return lease->lost().stop_requested(); }));
    EXPECT_FALSE(lease->held());
    EXPECT_EQ(server.ask({"EXISTS", key}), "1") << "the store still has it";
}

TEST_F(RedisRun, WhoWaitsWhileTheServerIsAwayGetsTheKeyWhenItIsBack) {
    client there{server.url()};
    auto held = there.try_acquire(key, {.ttl = 10min});
    ASSERT_TRUE(held);
    client waiting{line.url()};
    std::optional<lease> got;
    std::jthread waiter{[&] { got = waiting.acquire(key, {.wait = 5min}); }};
    ASSERT_TRUE(eventually([&] {
        return server.ask({"PUBSUB", "NUMSUB", "{k}:~dibs"}) == "[{k}:~dibs 1]";
    }));
    line.cut(true);
    EXPECT_EQ(held->release(), release_outcome::released);  // told to nobody
    line.heal();
    waiter.join();
    EXPECT_TRUE(got.has_value());
}

// --- the server's wall clock ---------------------------------------------------------------------

namespace {

struct RedisClock : ::testing::Test {
    static constexpr std::int64_t minute_us = 60'000'000;

    folder here;
    server_clock clock{here.file("clock"), 0, server_clock::runs::by_itself};
    redis_server server{{}, &clock};
};

}  // namespace

TEST_F(RedisClock, AStepForwardEndsTheLeaseAndTheHolderIsTold) {
    client one{server.url()};
    client two{server.url()};
    const auto lease = one.try_acquire(key, {.ttl = 30s, .renew_every = 500ms});
    ASSERT_TRUE(lease);
    std::optional<dibs::lease> next;
    std::jthread waiter{[&] { next = two.acquire(key, {.ttl = 30s, .wait = 5min}); }};
    clock.advance(minute_us);
    waiter.join();
    ASSERT_TRUE(next);
    EXPECT_TRUE(eventually([&] { return lease->lost().stop_requested(); }));
    EXPECT_FALSE(lease->held());
    EXPECT_GT(next->fence(), lease->last_fence()) << "which keeps the late holder's writes out";
    EXPECT_TRUE(next->held());
    EXPECT_EQ(next->release(), release_outcome::released) << "the old holder did not touch it";
}

TEST_F(RedisClock, AStepBackKeepsADeadHoldersKeyUntilItIsBroken) {
    client one{server.url()};
    // Nobody is left who could give it back.
    launch how;
    how.words = {"--store", server.url(), "acquire", key, "--ttl", "1s"};
    ASSERT_EQ(process(how).wait().status, 0);
    clock.advance(-minute_us);
    const auto until = boottime_ns() + 1'500'000'000;
    ASSERT_TRUE(eventually([&] { return boottime_ns() > until; }));
    const auto seen = one.inspect(key);
    ASSERT_TRUE(seen && !seen->holders.empty());
    EXPECT_GT(seen->holders[0].remaining, 30s) << "the time that is shown is that of the server";
    EXPECT_FALSE(one.try_acquire(key));
    std::optional<dibs::lease> next;
    std::jthread waiter{[&] { next = one.acquire(key, {.wait = 5min}); }};
    EXPECT_TRUE(one.revoke(key, seen->holders[0].fence));
    waiter.join();
    ASSERT_TRUE(next);
    EXPECT_GT(next->fence(), seen->holders[0].fence) << "the clock they are made of was set back";
}

TEST_F(RedisClock, ALivingHolderOutlivesAStepBackAndIsFollowedInTime) {
    client one{server.url()};
    client two{server.url()};
    auto lease = one.try_acquire(key, {.ttl = 3s, .renew_every = 300ms});
    ASSERT_TRUE(lease);
    const auto before = lease->fence();
    clock.advance(-minute_us);
    // The next renewal sets the expiry by the new time.
    ASSERT_TRUE(eventually([&] { return std::stol(server.ask({"PTTL", key})) <= 3'000; }));
    EXPECT_TRUE(lease->held());
    EXPECT_FALSE(two.try_acquire(key));
    EXPECT_EQ(lease->release(), release_outcome::released);
    const auto next = two.try_acquire(key);
    ASSERT_TRUE(next);
    EXPECT_GT(next->fence(), before);
}

// --- addresses -----------------------------------------------------------------------------------

namespace {

bool can_listen_on_ipv6() {
    const int made = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in6 at{};
    at.sin6_family = AF_INET6;
    at.sin6_addr = in6addr_loopback;
    const bool can = ::bind(made, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0;
    ::close(made);
    return can;
}

}  // namespace

TEST(RedisAddress, AnIPv6AddressIsWrittenInBrackets) {
    if (!can_listen_on_ipv6()) {
        GTEST_SKIP() << "this host has no ::1";
    }
    const redis_server server{{"--bind", "::1"}};
    const auto port = std::to_string(server.port());
    client one{"redis://[::1]:" + port};
    EXPECT_TRUE(one.try_acquire(key));
    EXPECT_EQ(one.store().location, "redis://[::1]:" + port + "/0");
    std::error_code error;
    client none{"redis://127.0.0.1:" + port, {}, error};
    EXPECT_EQ(error, errc::store_unreachable) << "it listens on ::1 alone";
}

namespace {

/// What a command sees in /etc/hosts, in a mount namespace of its own.
struct RedisHosts : ::testing::Test {
    void SetUp() override {
        write_file(here.file("hosts"), "127.0.0.1 localhost\n");
        if (with_hosts({"true"}).status != 0) {
            GTEST_SKIP() << "mounting over /etc/hosts is not allowed here";
        }
    }
    outcome with_hosts(const std::vector<std::string>& words) {
        launch how;
        how.program = "/usr/bin/unshare";
        how.words = {"--mount",
                     "sh",
                     "-c",
                     "mount --bind " + here.file("hosts") + " /etc/hosts && exec \"$@\"",
                     "sh"};
        how.words.insert(how.words.end(), words.begin(), words.end());
        how.cwd = here.path();
        return process(how).wait();
    }
    outcome run_at_host(int port) {
        return with_hosts({tests::places::command,
                           "--store",
                           "redis://locks.test:" + std::to_string(port),
                           "run",
                           key,
                           "--",
                           "true"});
    }

    folder here;
    redis_server server;
};

/// Accepts no connection and refuses none: its queue is full.
class deaf_port {
  public:
    deaf_port(const char* host, int port) {
        at_.sin_family = AF_INET;
        ::inet_pton(AF_INET, host, &at_.sin_addr);
        at_.sin_port = htons(static_cast<std::uint16_t>(port));
        listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        EXPECT_EQ(::bind(listener_, reinterpret_cast<const sockaddr*>(&at_), sizeof at_), 0);
        EXPECT_EQ(::listen(listener_, 0), 0);
        for (auto& one : fillers_) {
            one = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
            ::connect(one, reinterpret_cast<const sockaddr*>(&at_), sizeof at_);
        }
    }
    deaf_port(const deaf_port&) = delete;
    deaf_port& operator=(const deaf_port&) = delete;
    ~deaf_port() {
        for (const int one : fillers_) {
            ::close(one);
        }
        ::close(listener_);
    }

  private:
    sockaddr_in at_{};
    int listener_ = -1;
    int fillers_[4] = {-1, -1, -1, -1};
};

}  // namespace

TEST_F(RedisHosts, AHostIsFoundAtTheSecondOfItsAddresses) {
    write_file(here.file("hosts"), "127.0.0.2 locks.test\n127.0.0.1 locks.test\n");
    const auto ended = run_at_host(server.port());
    EXPECT_EQ(ended.status, 0) << ended.err;
    write_file(here.file("hosts"), "::1 locks.test\n127.0.0.1 locks.test\n");
    const auto after_ipv6 = run_at_host(server.port());
    EXPECT_EQ(after_ipv6.status, 0) << after_ipv6.err;
}

TEST_F(RedisHosts, AnAddressThatDoesNotAnswerDoesNotHideTheNextOne) {
    write_file(here.file("hosts"), "127.0.0.2 locks.test\n127.0.0.1 locks.test\n");
    const deaf_port deaf{"127.0.0.2", server.port()};
    const auto ended = run_at_host(server.port());
    EXPECT_EQ(ended.status, 0) << ended.err;
}

TEST_F(RedisHosts, AHostThatIsNotKnownIsUnreachable) {
    const auto ended = run_at_host(server.port());
    EXPECT_EQ(ended.status, 69);
    EXPECT_NE(ended.err.find("locks.test"), std::string::npos) << ended.err;
}

}  // namespace dibs::testing
