// SPDX-License-Identifier: Apache-2.0
// Word that is left with a lock on a real server: how it is limited, what it does to locks of other
// programs, and what becomes of it when the line breaks, rights are missing or the protocol is old.

#include "redis_peer.hpp"
#include "support/relay.hpp"

#include <algorithm>
#include <string>

namespace dibs::testing {

namespace {

core::acquire asking(const std::string& key, std::uint64_t holder) {
    auto asked = acquire_of(key, holder_of(holder));
    asked.notify = true;
    return asked;
}

struct RedisNotices : ::testing::Test {
    void SetUp() override {
        ASSERT_EQ(holder.open(), std::error_code{}) << holder.detail;
        ASSERT_EQ(holder.ask(acquire_of("k", holder_of(1), 1h)).what, verdict::granted);
    }
    void TearDown() override {
        if (waiter.opened) {
            waiter.opened->unwatch(id);
        }
    }
    void open_waiter() {
        ASSERT_EQ(waiter.open(), std::error_code{}) << waiter.detail;
        id = waiter.opened->await_notices("k", [this](store::wake_by) { ++notices; });
        ASSERT_NE(id, 0U);
    }
    [[nodiscard]] bool told(core::nanoseconds within = 20s) {
        return waiter.world.run_until([this] { return notices > 0; }, within);
    }
    void give_back() {
        ASSERT_EQ(holder.ask(release_of("k", holder_of(1))).what, verdict::released);
    }
    [[nodiscard]] std::string lock() const { return server.ask({"GET", "k"}); }

    redis_server server;
    relay line{server.socket()};
    redis_peer holder{server};
    redis_peer waiter{server};
    store::watch_id id = 0;
    int notices = 0;
};

}  // namespace

TEST_F(RedisNotices, WordLiesWithTheLockAndNowhereElse) {
    open_waiter();
    const auto before = lock();
    const auto expires = server.ask({"PEXPIRETIME", "k"});
    const auto keys = server.ask({"DBSIZE"});
    ASSERT_TRUE(waiter.ask(asking("k", 2)).will_notify);
    EXPECT_EQ(lock().substr(0, before.size()), before);
    EXPECT_EQ(lock().size(), before.size() + 18) << "one name, and a character on each side";
    EXPECT_EQ(server.ask({"PEXPIRETIME", "k"}), expires);
    EXPECT_EQ(server.ask({"DBSIZE"}), keys);
    give_back();
    EXPECT_TRUE(told());
    EXPECT_EQ(server.ask({"EXISTS", "k"}), "0");
}

TEST_F(RedisNotices, OneMoreThanThereIsRoomForHasToListen) {
    open_waiter();
    std::string crowd = "\x1e";
    while (crowd.size() < 1010) {
        crowd += "0123456789abcdef\x1e";
    }
    const auto before = lock();
    ASSERT_NE(server.ask({"SET", "k", before + crowd, "KEEPTTL"}), "");
    const auto refused = waiter.ask(asking("k", 2));
    EXPECT_EQ(refused.what, verdict::held);
    EXPECT_FALSE(refused.will_notify);
    ASSERT_EQ(refused.holders.size(), 1U);
    EXPECT_EQ(refused.holders.front().who.command, holder.options.who.command);
    EXPECT_EQ(lock(), before + crowd);
    EXPECT_EQ(holder.ask(renew_of("k", holder_of(1), 1h)).what, verdict::renewed);
    EXPECT_EQ(lock(), before + crowd);
    give_back();
}

TEST_F(RedisNotices, ALockOfAnotherProgramIsNotTouched) {
    open_waiter();
    for (const std::string token : {"token", "0f8fad5b-d9cb-469f-a165-70867728950e"}) {
        ASSERT_EQ(server.ask({"SET", "theirs", token, "PX", "60000"}), "OK");
        const auto refused = waiter.ask(asking("theirs", 2));
        EXPECT_EQ(refused.what, verdict::held);
        EXPECT_FALSE(refused.will_notify);
        EXPECT_EQ(server.ask({"GET", "theirs"}), token);
    }
}

TEST_F(RedisNotices, AFullServerTakesNoWord) {
    open_waiter();
    const auto before = lock();
    ASSERT_EQ(server.ask({"CONFIG", "SET", "maxmemory", "1"}), "OK");
    const auto refused = waiter.ask(asking("k", 2));
    EXPECT_EQ(refused.what, verdict::held);
    EXPECT_FALSE(refused.will_notify);
    EXPECT_EQ(lock(), before);
    ASSERT_EQ(server.ask({"CONFIG", "SET", "maxmemory", "0"}), "OK");
    EXPECT_TRUE(waiter.ask(asking("k", 2)).will_notify);
    ASSERT_EQ(server.ask({"CONFIG", "SET", "maxmemory", "1"}), "OK");
    give_back();
    EXPECT_TRUE(told()) << "giving back takes no memory";
}

TEST_F(RedisNotices, AServerThatForgotTheScriptTakesWordAllTheSame) {
    open_waiter();
    ASSERT_EQ(server.ask({"SCRIPT", "FLUSH"}), "OK");
    ASSERT_TRUE(waiter.ask(asking("k", 2)).will_notify);
    ASSERT_EQ(server.ask({"SCRIPT", "FLUSH"}), "OK");
    give_back();
    EXPECT_TRUE(told());
}

TEST_F(RedisNotices, OneConnectionIsEnough) {
    open_waiter();
    const auto all = server.ask({"CLIENT", "LIST"});
    ASSERT_TRUE(waiter.ask(asking("k", 2)).will_notify);
    give_back();
    ASSERT_TRUE(told());
    const auto lines = [](const std::string& text) {
        return std::count(text.begin(), text.end(), '\n');
    };
    EXPECT_EQ(lines(server.ask({"CLIENT", "LIST"})), lines(all));
}

TEST_F(RedisNotices, WhoeverIsCutOffLooksAgainAndLeavesWordAnew) {
    waiter.lead_through(line.port());
    open_waiter();
    ASSERT_TRUE(waiter.ask(asking("k", 2)).will_notify);
    const auto before = lock();
    for (int round = 1; round <= 3; ++round) {
        line.cut(true);
        EXPECT_TRUE(waiter.world.run_until([&] { return notices == round; }))
            << "what is said meanwhile is lost";
        line.heal();
        EXPECT_TRUE(waiter.insist(asking("k", 2)).will_notify);
        EXPECT_EQ(lock(), before) << "it is there once";
    }
    give_back();
    EXPECT_TRUE(waiter.world.run_until([&] { return notices == 4; }));
}

TEST_F(RedisNotices, WordsThatComeByteByByteAreUnderstood) {
    line.requests({.byte_by_byte = true});
    line.replies({.byte_by_byte = true});
    waiter.lead_through(line.port());
    open_waiter();
    ASSERT_TRUE(waiter.ask(asking("k", 2)).will_notify);
    give_back();
    EXPECT_TRUE(told());
}

TEST_F(RedisNotices, WithoutTheRightToListenNoWordIsReliedOn) {
    ASSERT_EQ(
        server.ask({"ACL", "SETUSER", "deaf", "on", ">secret", "~*", "&*", "+@all", "-subscribe"}),
        "OK");
    waiter.options.where.user = "deaf";
    waiter.options.where.password = "secret";
    open_waiter();
    for (int round = 0; round < 3; ++round) {
        const auto refused = waiter.ask(asking("k", 2));
        EXPECT_EQ(refused.what, verdict::held) << refused.detail;
        EXPECT_FALSE(refused.will_notify);
    }
    EXPECT_EQ(waiter.ask(acquire_of("other", holder_of(3))).what, verdict::granted);
}

// The server cuts a connection that is subscribed when more than client-output-buffer-limit pubsub, 32 MB,
// is on its way to it.
struct RedisNoticesAndLargeResults : RedisNotices {
    static constexpr std::size_t keys = 48;

    void keep_results() {
        for (std::size_t at = 0; at < keys; ++at) {
            const auto key = "large" + std::to_string(at);
            ASSERT_EQ(holder.ask(acquire_of(key, holder_of(100 + at))).what, verdict::granted);
            ASSERT_EQ(holder.ask(finish(key, 100 + at)).what, verdict::finished);
        }
    }
    [[nodiscard]] static core::release finish(const std::string& key, std::uint64_t by) {
        return finish_of(
            key, holder_of(by), core::result_to_keep{std::string(1'000'000, 'x'), 1h, 1h});
    }
    [[nodiscard]] store::answers ask_for_all() {
        std::vector<core::verb> all;
        for (std::size_t at = 0; at < keys; ++at) {
            all.emplace_back(asking("large" + std::to_string(at), 500 + at));
        }
        return waiter.wait_for(waiter.send(std::move(all)));
    }
    /// Whether the server counts anybody who hears notices.
    [[nodiscard]] bool somebody_hears() const {
        return server.ask({"CLIENT", "LIST", "TYPE", "pubsub"}) != "";
    }
};

TEST_F(RedisNoticesAndLargeResults, WhoeverWasCutForThemListensInAnotherWay) {
    open_waiter();
    keep_results();
    const auto all_told = [](const store::answers& given) {
        return std::all_of(given.begin(), given.end(), [](const auto& one) {
            return one.took == effect::yes && one.result && one.result->value.size() == 1'000'000;
        });
    };
    bool told_all = all_told(ask_for_all());
    for (int round = 0; round < 3 && !told_all; ++round) {
        EXPECT_NE(waiter.insist(asking("k", 2)).what, verdict::granted);
        told_all = all_told(ask_for_all());
    }
    EXPECT_TRUE(told_all) << "cut again and again";
    EXPECT_FALSE(waiter.insist(asking("k", 2)).will_notify);
}

TEST_F(RedisNoticesAndLargeResults, WhoeverKeepsThemIsNotCut) {
    open_waiter();
    ASSERT_TRUE(waiter.ask(asking("k", 2)).will_notify);
    std::vector<core::verb> all;
    for (std::size_t at = 0; at < keys; ++at) {
        const auto key = "large" + std::to_string(at);
        ASSERT_EQ(waiter.ask(acquire_of(key, holder_of(100 + at))).what, verdict::granted);
        all.emplace_back(finish(key, 100 + at));
    }
    const auto given = waiter.wait_for(waiter.send(std::move(all)));
    EXPECT_EQ(std::count_if(given.begin(),
                            given.end(),
                            [](const auto& one) { return one.what == verdict::finished; }),
              static_cast<std::ptrdiff_t>(keys));
    EXPECT_TRUE(told()) << "word that was left is heard no more, so everybody looks";
    EXPECT_FALSE(waiter.ask(asking("k", 2)).will_notify);
    EXPECT_FALSE(somebody_hears());
}

TEST_F(RedisNoticesAndLargeResults, OneLargeAnswerIsWarningEnough) {
    open_waiter();
    ASSERT_EQ(holder.ask(acquire_of("large", holder_of(100))).what, verdict::granted);
    ASSERT_EQ(
        holder
            .ask(finish_of(
                "large", holder_of(100), core::result_to_keep{std::string(2'000'000, 'x'), 1h, 1h}))
            .what,
        verdict::finished);
    ASSERT_TRUE(waiter.ask(asking("k", 2)).will_notify);
    EXPECT_TRUE(somebody_hears());
    EXPECT_EQ(waiter.ask(asking("large", 3)).what, verdict::done);
    EXPECT_TRUE(told()) << "word that was left is heard no more, so everybody looks";
    EXPECT_FALSE(waiter.ask(asking("k", 2)).will_notify);
    EXPECT_FALSE(somebody_hears());
    give_back();
}

TEST(RedisNoticesOfOld, WhereTheServerKnowsTheOldProtocolAloneNoWordIsLeft) {
    const redis_server server{{"--rename-command", "HELLO", ""}};
    redis_peer holder{server};
    redis_peer waiter{server};
    ASSERT_EQ(holder.open(), std::error_code{}) << holder.detail;
    ASSERT_EQ(waiter.open(), std::error_code{}) << waiter.detail;
    ASSERT_EQ(holder.ask(acquire_of("k", holder_of(1), 1h)).what, verdict::granted);
    const auto before = server.ask({"GET", "k"});
    const auto refused = waiter.ask(asking("k", 2));
    EXPECT_EQ(refused.what, verdict::held) << refused.detail;
    EXPECT_FALSE(refused.will_notify);
    EXPECT_EQ(server.ask({"GET", "k"}), before);
}

}  // namespace dibs::testing
