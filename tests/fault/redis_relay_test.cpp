// SPDX-License-Identifier: Apache-2.0
// The Redis store behind a network that loses, delays, cuts and garbles. What must hold: yes, no and
// unknown are each true, also afterwards; what is unknown is settled by the holder id.

#include "redis_peer.hpp"
#include "support/relay.hpp"

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace dibs::testing {

namespace {

struct RedisRelay : ::testing::Test {
    RedisRelay() { peer.lead_through(line.port()); }
    void open() { ASSERT_EQ(peer.open(), std::error_code{}) << peer.detail; }

    [[nodiscard]] bool there(const std::string& key) const {
        return server.ask({"EXISTS", key}) == "1";
    }
    [[nodiscard]] std::string holder_there(const std::string& key) const {
        return server.ask({"GETRANGE", key, "6", "37"});
    }

    /// What was told of an acquire is what is there now.
    void expect_true(const core::answer& told, const std::string& key, std::uint64_t holder) {
        const auto held = holder_of(holder).text();
        if (told.took == effect::yes) {
            EXPECT_EQ(told.what, verdict::granted) << key;
            EXPECT_EQ(holder_there(key), held) << key;
        } else if (told.took == effect::no) {
            EXPECT_FALSE(there(key)) << key << ": " << told.detail;
            EXPECT_EQ(told.error, condition::retryable) << told.detail;
        } else {
            EXPECT_EQ(told.error, condition::outcome_unknown) << told.detail;
            EXPECT_FALSE(told.detail.empty());
        }
    }
    /// The key is free after it, and stays free.
    void settle(const core::answer& told, const std::string& key, std::uint64_t holder) {
        const auto given = peer.insist(release_of(key, holder_of(holder)));
        EXPECT_TRUE(given.what == verdict::released || given.what == verdict::not_held);
        EXPECT_TRUE(told.took != effect::yes || given.what == verdict::released);
        EXPECT_TRUE(told.took != effect::no || given.what == verdict::not_held);
        EXPECT_FALSE(there(key));
    }

    redis_server server;
    relay line{server.socket()};
    redis_peer peer{server};
};

std::vector<core::verb> acquires(int from, int count) {
    std::vector<core::verb> all;
    for (int at = from; at < from + count; ++at) {
        all.emplace_back(acquire_of(
            "k" + std::to_string(at), holder_of(static_cast<std::uint64_t>(at) + 1), 60s));
    }
    return all;
}

/// Replies that no server would give, and some that one would, to another question.
const std::vector<std::string> nonsense{
    "HTTP/1.1 400 Bad Request\r\n\r\n",
    "\r\n\r\n\r\n",
    std::string(64, '\0'),
    "*-7\r\n",
    "*2147483647\r\n",
    "$99999999999999\r\n",
    "$-5\r\n",
    ":99999999999999999999999\r\n",
    "+OK\r\n+OK\r\n+OK\r\n+OK\r\n",
    ":1\r\n",
    "*1\r\n:1\r\n",
    "*2\r\n$1\r\nx\r\n$1\r\ny\r\n",
    "*3\r\n:1790000000000000\r\n:1790000000000000\r\n:1790000000000000\r\n",
    "*2\r\n:1790000000000000\r\n*0\r\n",
    "*2\r\n:1790000000000000\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
    "_\r\n",
    "%1\r\n+a\r\n+b\r\n",
};

struct trouble_on_the_line {
    const char* name;
    std::function<void(relay&)> begins;
};

class RedisRelayTrouble : public RedisRelay,
                          public ::testing::WithParamInterface<trouble_on_the_line> {};

INSTANTIATE_TEST_SUITE_P(
    When,
    RedisRelayTrouble,
    ::testing::Values(
        trouble_on_the_line{"RequestsAreLost", [](relay& on) { on.requests({.drops = true}); }},
        trouble_on_the_line{"RepliesAreLost", [](relay& on) { on.replies({.drops = true}); }},
        trouble_on_the_line{"BothAreLost", [](relay& on) { on.swallow_all(); }},
        trouble_on_the_line{"RequestsAreLate", [](relay& on) { on.requests({.delay = 3s}); }},
        trouble_on_the_line{"RepliesAreLate", [](relay& on) { on.replies({.delay = 3s}); }},
        trouble_on_the_line{"AllIsCut", [](relay& on) { on.cut(true); }},
        trouble_on_the_line{"ARequestIsCut", [](relay& on) { on.requests({.cut_after = 5'000}); }},
        trouble_on_the_line{"AReplyIsCut", [](relay& on) { on.replies({.cut_after = 300}); }}),
    [](const auto& tested) { return tested.param.name; });

}  // namespace

TEST_P(RedisRelayTrouble, EveryAnswerIsTrueAndEveryDoubtIsSettled) {
    open();
    constexpr int batches = 8;
    constexpr int size = 32;
    GetParam().begins(line);
    std::vector<std::shared_ptr<std::optional<store::answers>>> sent;
    for (int batch = 0; batch < batches; ++batch) {
        sent.push_back(peer.send(acquires(batch * size, size), 500ms));
    }
    std::vector<core::answer> told;
    for (const auto& batch : sent) {
        for (auto& one : peer.wait_for(batch)) {
            told.push_back(std::move(one));
        }
    }
    ASSERT_EQ(told.size(), std::size_t{batches * size});
    // At once, and again when everything that was held back has arrived.
    for (int look = 0; look < 2; ++look) {
        for (int at = 0; at < batches * size; ++at) {
            expect_true(told[static_cast<std::size_t>(at)],
                        "k" + std::to_string(at),
                        static_cast<std::uint64_t>(at) + 1);
        }
        if (look == 0) {
            line.heal();
            ASSERT_TRUE(eventually([&] { return line.idle(); }));
        }
    }
    for (int at = 0; at < batches * size; ++at) {
        settle(told[static_cast<std::size_t>(at)],
               "k" + std::to_string(at),
               static_cast<std::uint64_t>(at) + 1);
    }
    EXPECT_EQ(peer.insist(acquire_of("after", holder_of(1'000'000))).what, verdict::granted);
}

TEST_F(RedisRelay, ARequestThatArrivesAfterItsDeadlineHasNoEffect) {
    open();
    const auto clock = peer.ask(acquire_of("clock", holder_of(1)));
    ASSERT_EQ(clock.what, verdict::granted);
    line.requests({.delay = 3s});
    auto asked = acquire_of("late", holder_of(2), 60s);
    asked.not_after = clock.now.lease + 1s;
    const auto told = peer.ask(asked, 500ms);
    EXPECT_EQ(told.took, effect::unknown) << told.detail;
    EXPECT_FALSE(there("late"));
    line.heal();
    ASSERT_TRUE(eventually([&] { return line.idle(); }));
    EXPECT_FALSE(there("late")) << "its caller may have been told long ago that nothing is held";
}

TEST_F(RedisRelay, ACutAtAnyByteOfARequestLeavesATrueAnswer) {
    for (int cut = 1; cut < 400; cut += 9) {
        line.heal();
        open();
        // So that the script is there and the request is the short one.
        ASSERT_EQ(peer.ask(acquire_of("first", holder_of(9))).took, effect::yes);
        line.requests({.cut_after = cut});
        const auto told = peer.ask(acquire_of("k", holder_of(1)), 2s);
        expect_true(told, "k", 1);
        line.heal();
        settle(told, "k", 1);
    }
}

TEST_F(RedisRelay, ACutAtAnyByteOfAReplyLeavesATrueAnswer) {
    for (int cut = 0; cut < 60; ++cut) {
        line.heal();
        open();
        ASSERT_EQ(peer.ask(acquire_of("first", holder_of(9))).took, effect::yes);
        line.replies({.cut_after = cut});
        const auto told = peer.ask(acquire_of("k", holder_of(1)), 2s);
        expect_true(told, "k", 1);
        EXPECT_TRUE(there("k")) << "the request was not touched";
        line.heal();
        settle(told, "k", 1);
    }
}

TEST_F(RedisRelay, WordsThatComeByteByByteAreUnderstood) {
    line.requests({.byte_by_byte = true});
    line.replies({.byte_by_byte = true});
    open();
    int wakes = 0;
    bool ready = false;
    const auto id = peer.opened->watch(
        "k0", [&](std::error_code error) { ready = !error; }, [&](auto) { ++wakes; });
    ASSERT_TRUE(peer.world.run_until([&] { return ready; }));
    for (const auto& one : peer.wait_for(peer.send(acquires(0, 64)))) {
        EXPECT_EQ(one.what, verdict::granted) << one.detail;
    }
    const auto before = wakes;
    EXPECT_EQ(peer.ask(release_of("k0", holder_of(1))).what, verdict::released);
    EXPECT_TRUE(peer.world.run_until([&] { return wakes > before; }));
    peer.opened->unwatch(id);
}

TEST_F(RedisRelay, NonsenseInsteadOfAGreetingIsNoServer) {
    for (const auto& told : nonsense) {
        line.replies({.instead = told});
        EXPECT_EQ(peer.open(), condition::retryable) << told << ": " << peer.detail;
        EXPECT_FALSE(peer.opened);
        EXPECT_NE(peer.detail.find(std::to_string(line.port())), std::string::npos) << peer.detail;
    }
}

TEST_F(RedisRelay, AServerThatIsTooOldIsToldBeforeItIsUsed) {
    const auto greets_as = [&](const std::string& version) {
        line.replies({.instead = "%2\r\n+server\r\n+redis\r\n+version\r\n+" + version + "\r\n"});
        return peer.open();
    };
    for (const std::string version : {"6.0.16", "5.0.14", "6.1", "2.8.0"}) {
        EXPECT_EQ(greets_as(version), errc::unsupported) << version;
        EXPECT_NE(peer.detail.find(version + "; 6.2 or later"), std::string::npos) << peer.detail;
    }
    for (const std::string version :
         {"6.2.0", "6.10.1", "7.0.15", "10.0", "unstable", "255.255.255"}) {
        EXPECT_NE(greets_as(version), errc::unsupported) << version;
    }
}

TEST_F(RedisRelay, NonsenseInsteadOfAnAnswerIsNeverTakenForOne) {
    open();
    for (const auto& given : nonsense) {
        ASSERT_EQ(peer.insist(acquire_of("first", holder_of(9))).took, effect::yes);
        line.replies({.instead = given});
        const auto told = peer.ask(acquire_of("k", holder_of(1)), 500ms);
        EXPECT_NE(told.took, effect::yes) << given;
        expect_true(told, "k", 1);
        line.heal();
        settle(told, "k", 1);
    }
}

TEST_F(RedisRelay, ARenewalDoesNotWaitBehindAcquires) {
    open();
    ASSERT_EQ(peer.ask(acquire_of("mine", holder_of(9'999'999), 60s)).what, verdict::granted);
    line.requests({.delay = 200ms});
    std::vector<std::shared_ptr<std::optional<store::answers>>> sent;
    constexpr int batches = 60;
    for (int batch = 0; batch < batches; ++batch) {
        sent.push_back(peer.send(acquires(batch * 100, 100), 60s));
    }
    std::optional<store::answers> renewed;
    std::vector<core::entry> renewal;
    renewal.push_back({renew_of("mine", holder_of(9'999'999), 60s), peer.world.now() + 60s});
    peer.opened->execute(store::lane::renewals, std::move(renewal), [&](store::answers given) {
        renewed = std::move(given);
    });
    ASSERT_TRUE(peer.world.run_until([&] { return renewed.has_value(); }));
    EXPECT_EQ(renewed->front().what, verdict::renewed);
    int answered = 0;
    for (const auto& batch : sent) {
        answered += batch->has_value() ? 1 : 0;
    }
    EXPECT_LE(answered, 8) << "the few that were on their way";
    line.heal();
    for (const auto& batch : sent) {
        EXPECT_EQ(peer.wait_for(batch).front().what, verdict::granted);
    }
}

TEST_F(RedisRelay, WhoListensLooksAgainAsSoonAsTheServerIsBack) {
    open();
    int wakes = 0;
    bool ready = false;
    const auto id = peer.opened->watch(
        "k", [&](std::error_code error) { ready = !error; }, [&](auto) { ++wakes; });
    ASSERT_TRUE(peer.world.run_until([&] { return ready; }));
    for (int round = 0; round < 3; ++round) {
        line.cut(true);
        const auto tried = line.connections();
        ASSERT_TRUE(eventually([&] { return line.connections() > tried + 2; }))
            << "it goes on trying";
        const auto before = wakes;
        line.heal();
        EXPECT_TRUE(peer.world.run_until([&] { return wakes > before; }))
            << "what was released meanwhile was told to nobody";
        const auto woken = wakes;
        ASSERT_EQ(peer.insist(acquire_of("k", holder_of(1))).what, verdict::granted);
        ASSERT_EQ(peer.insist(release_of("k", holder_of(1))).what, verdict::released);
        EXPECT_TRUE(peer.world.run_until([&] { return wakes > woken; })) << "it listens again";
    }
    peer.opened->unwatch(id);
}

TEST_F(RedisRelay, APortThatAcceptsAndNeverAnswersIsNotWaitedForLong) {
    line.swallow_all();
    const auto begun = peer.world.now();
    EXPECT_EQ(peer.open(), errc::store_unreachable);
    EXPECT_LT(peer.world.now() - begun, 10s);
    EXPECT_NE(peer.detail.find("says nothing"), std::string::npos) << peer.detail;
}

}  // namespace dibs::testing
