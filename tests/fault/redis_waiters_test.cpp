// SPDX-License-Identifier: Apache-2.0
// Goal: who waits for what another process fetches sends few commands. Method: clients of several
// names in one process, each a process to the server, on one value that runs out; the server's own
// count of its commands.

#include "support/redis_server.hpp"

#include <dibs/dibs.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace dibs::testing {

namespace {

using namespace std::chrono_literals;

constexpr int waiting = 5;

struct waiter {
    explicit waiter(const std::string& url, std::atomic<int>& fetches)
        : through(url), value(through, "token", [&fetches] {
              ++fetches;
              std::this_thread::sleep_for(400ms);
              return fetched<>{"token", 1500ms};
          }) {}
    client through;
    cached_value<> value;
};

/// How often the server was sent one, those of scripts included.
std::uint64_t count_of(const redis_server& server, const std::string& command) {
    const auto text = server.ask({"INFO", "commandstats"});
    const auto begins = "cmdstat_" + command + ":calls=";
    const auto at = text.find(begins);
    return at == std::string::npos ? 0 : std::stoull(text.substr(at + begins.size()));
}

struct sent {
    std::uint64_t scripts = 0;
    std::uint64_t subscribed = 0;
    std::uint64_t unsubscribed = 0;
    std::uint64_t greeted = 0;
};

sent count(const redis_server& server) {
    return {count_of(server, "evalsha") + count_of(server, "eval"),
            count_of(server, "subscribe"),
            count_of(server, "unsubscribe"),
            count_of(server, "hello")};
}

}  // namespace

TEST(RedisWaiters, WhoWaitsForAFetchSendsTwoScriptsAndSubscribesOnce) {
    redis_server server;
    std::atomic<int> fetches{0};
    std::vector<std::unique_ptr<waiter>> all;
    for (int at = 0; at <= waiting; ++at) {
        all.push_back(std::make_unique<waiter>(server.url(), fetches));
        ASSERT_EQ(all.back()->value.get(), "token");
    }
    ASSERT_EQ(fetches, 1);
    for (const bool first_time : {true, false}) {
        std::this_thread::sleep_for(1600ms);  // it has run out
        const auto before = count(server);
        const auto fetched_before = fetches.load();
        std::vector<std::thread> threads;
        for (auto& one : all) {
            for (int caller = 0; caller < 3; ++caller) {
                threads.emplace_back([&value = one->value] { EXPECT_EQ(value.get(), "token"); });
            }
        }
        for (auto& one : threads) {
            one.join();
        }
        const auto after = count(server);
        EXPECT_EQ(fetches - fetched_before, 1);
        EXPECT_EQ(after.greeted, before.greeted) << "no further connection";
        EXPECT_EQ(after.unsubscribed, before.unsubscribed);
        EXPECT_LE(after.subscribed - before.subscribed, first_time ? waiting + 1U : 0U);
        // An acquire and a finish of the one that fetches; and an acquire or two more by whoever
        // came while the first one was answered.
        EXPECT_LE(after.scripts - before.scripts, 2U * waiting + 4U) << first_time;
    }
}

}  // namespace dibs::testing
