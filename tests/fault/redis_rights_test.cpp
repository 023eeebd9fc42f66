// SPDX-License-Identifier: Apache-2.0
// An ACL user who has exactly the rights that docs/stores/redis.md names: they are enough, and of
// each it is told or borne when it is missing.

#include "redis_peer.hpp"
#include "support/places.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace dibs::testing {

namespace {

/// The words between the backticks, from `ACL SETUSER` on.
redis_server::words documented_rights() {
    std::ifstream page{std::string{tests::places::source_folder} + "/docs/stores/redis.md"};
    const std::string text{std::istreambuf_iterator<char>{page}, {}};
    const auto begins = text.find("ACL SETUSER");
    std::istringstream words{text.substr(begins, text.find('`', begins) - begins)};
    return {std::istream_iterator<std::string>{words}, {}};
}

struct RedisRights : ::testing::Test {
    void SetUp() override {
        ASSERT_EQ(server.ask(documented_rights()), "OK");
        peer.options.where.user = "locks";
        peer.options.where.password = "secret";
    }
    void open() { ASSERT_EQ(peer.open(), std::error_code{}) << peer.detail; }
    void change(const std::string& right) {
        ASSERT_EQ(server.ask({"ACL", "SETUSER", "locks", right}), "OK") << right;
    }
    void restore() {
        ASSERT_EQ(server.ask({"ACL", "SETUSER", "locks", "reset"}), "OK");
        ASSERT_EQ(server.ask(documented_rights()), "OK");
        open();
    }
    core::page list() {
        std::optional<core::page> told;
        peer.opened->list("", "", 100, [&](core::page page) { told = std::move(page); });
        EXPECT_TRUE(peer.world.run_until([&] { return told.has_value(); }));
        return told.value_or(core::page{});
    }
    /// Whether a release wakes who waits.
    bool wakes(const std::string& key, std::uint64_t holder) {
        std::optional<std::error_code> entered;
        bool woken = false;
        const auto id = peer.opened->watch(
            key, [&](std::error_code error) { entered = error; }, [&](auto) { woken = true; });
        EXPECT_TRUE(peer.world.run_until([&] { return entered.has_value(); }))
            << "told neither that it holds nor why not";
        EXPECT_EQ(peer.ask(release_of(key, holder_of(holder))).what, verdict::released);
        const bool in_time = !*entered && peer.world.run_until([&] { return woken; }, 2s);
        peer.opened->unwatch(id);
        return in_time;
    }
    void live(const std::string& key) {
        const auto granted = peer.ask(acquire_of(key, holder_of(1)));
        ASSERT_EQ(granted.what, verdict::granted) << granted.detail;
        auto more = renew_of(key, holder_of(1));
        more.fences = 3;
        ASSERT_EQ(peer.ask(renew_of(key, holder_of(1))).what, verdict::renewed);
        ASSERT_EQ(peer.ask(more).what, verdict::renewed);
        const auto finished = peer.ask(
            finish_of(key, holder_of(1), result_of("for ever", 0s, core::microseconds::max())));
        ASSERT_EQ(finished.what, verdict::finished) << finished.detail;
        ASSERT_EQ(peer.ask(acquire_of(key, holder_of(2))).what, verdict::granted);
        ASSERT_EQ(peer.ask(renew_of(key, holder_of(2))).what, verdict::renewed);
        ASSERT_EQ(peer.ask(block_of(key, 1h, "x")).what, verdict::block_set);
        ASSERT_EQ(peer.ask(block_of(key, 0s, "")).what, verdict::block_set);
        ASSERT_EQ(peer.ask(release_of(key, holder_of(2))).what, verdict::released);
        ASSERT_EQ(server.ask({"EXISTS", key}), "0");
        auto untraced = acquire_of("bare" + key, holder_of(1));
        untraced.traced = false;
        ASSERT_EQ(peer.ask(untraced).what, verdict::granted);
        ASSERT_EQ(peer.ask(renew_of(untraced.key, holder_of(1))).what, verdict::renewed);
        ASSERT_EQ(peer.ask(release_of(untraced.key, holder_of(1))).what, verdict::released);
    }

    redis_server server;
    redis_peer peer{server};
};

}  // namespace

TEST_F(RedisRights, ThoseThatAreDocumentedAreEnough) {
    open();
    live("k");
    ASSERT_EQ(peer.ask(acquire_of("woken", holder_of(1))).what, verdict::granted);
    EXPECT_TRUE(wakes("woken", 1));
    ASSERT_EQ(peer.ask(acquire_of("seen", holder_of(1))).what, verdict::granted);
    const auto listed = list();
    EXPECT_FALSE(listed.error) << listed.detail;
    EXPECT_EQ(listed.records.size(), 3U) << "a result, one that was given back, one that is held";
    ASSERT_EQ(peer.ask(revoke_of("seen", 1)).what, verdict::fence_moved);
    EXPECT_TRUE(peer.opened->diagnose().size() > 0);
}

TEST_F(RedisRights, OneThatIsMissingIsNamed) {
    open();
    for (const std::string right : {"evalsha", "set", "time", "setrange", "get"}) {
        change("-" + right);
        const auto denied = peer.wait_for(peer.send({acquire_of("new", holder_of(2)),
                                                     acquire_of("newer", holder_of(3))}))
                                .front();
        EXPECT_EQ(denied.error, errc::permission_denied) << right << ": " << denied.detail;
        EXPECT_EQ(denied.took, effect::no) << right;
        EXPECT_NE(denied.detail.find(right), std::string::npos) << denied.detail;
        EXPECT_EQ(server.ask({"EXISTS", "new"}), "0");
        change("+" + right);
    }
    change("-eval");
    ASSERT_EQ(server.ask({"SCRIPT", "FLUSH"}), "OK");
    const auto unknown_script = peer.ask(acquire_of("new", holder_of(2)));
    EXPECT_EQ(unknown_script.error, errc::permission_denied) << unknown_script.detail;
    EXPECT_NE(unknown_script.detail.find("eval"), std::string::npos) << unknown_script.detail;
    change("+eval");

    ASSERT_EQ(peer.ask(acquire_of("k", holder_of(1), 1h)).what, verdict::granted);
    change("-del");
    const auto unreleased = peer.ask(release_of("k", holder_of(1)));
    EXPECT_EQ(unreleased.error, errc::permission_denied) << unreleased.detail;
    EXPECT_NE(unreleased.detail.find("del"), std::string::npos) << unreleased.detail;
    change("+del");
    change("-pexpireat");
    const auto unrenewed = peer.ask(renew_of("k", holder_of(1)));
    EXPECT_EQ(unrenewed.error, errc::permission_denied) << unrenewed.detail;
    EXPECT_NE(unrenewed.detail.find("pexpireat"), std::string::npos) << unrenewed.detail;
    change("+pexpireat");
    EXPECT_EQ(peer.ask(renew_of("k", holder_of(1))).what, verdict::renewed);

    change("-scan");
    const auto unlisted = list();
    EXPECT_EQ(unlisted.error, errc::permission_denied) << unlisted.detail;
    EXPECT_NE(unlisted.detail.find("scan"), std::string::npos) << unlisted.detail;
}

TEST(RedisCommands, OneThatTheServerDoesNotHaveIsNamedAndNothingIsDone) {
    for (const std::string command : {"time", "setrange", "evalsha"}) {
        const redis_server server{{"--rename-command", command, ""}};
        redis_peer peer{server};
        ASSERT_EQ(peer.open(), std::error_code{}) << peer.detail;
        auto shared = acquire_of("k", holder_of(2));
        shared.part.capacity = 3;
        const auto refused = peer.ask(shared);
        EXPECT_EQ(refused.error, errc::store_refused) << command << ": " << refused.detail;
        EXPECT_EQ(refused.took, effect::no) << command;
        auto told = refused.detail;
        std::transform(told.begin(), told.end(), told.begin(), [](unsigned char one) {
            return static_cast<char>(std::tolower(one));
        });
        EXPECT_NE(told.find(command), std::string::npos) << refused.detail;
        EXPECT_EQ(server.ask({"EXISTS", "k", "{k}:~dibs"}), "0");
    }
}

TEST_F(RedisRights, OneThatIsNotNeededToLockStopsNothing) {
    for (const std::string right : {"-pexpiretime",
                                    "-pttl",
                                    "-persist",
                                    "-pexpire",
                                    "-publish",
                                    "-pubsub",
                                    "-subscribe",
                                    "-mget",
                                    "-exists",
                                    "-scan",
                                    "-getrange",
                                    "-info",
                                    "-config|get",
                                    "-client|setname",
                                    "-hello"}) {
        restore();
        change(right);
        open();
        SCOPED_TRACE(right);
        live("k" + right);
    }
}

TEST_F(RedisRights, WithoutThoseToTalkWaitersArePolling) {
    for (const std::string right : {"-publish", "-subscribe", "resetchannels"}) {
        restore();
        change(right);
        open();
        const auto key = "k" + right;
        ASSERT_EQ(peer.ask(acquire_of(key, holder_of(1))).what, verdict::granted);
        EXPECT_FALSE(wakes(key, 1)) << right;
    }
}

TEST_F(RedisRights, AKeyThatIsNotAllowedFailsAlone) {
    change("resetkeys");
    change("~ours*");
    change("~{ours*}:~dibs*");
    change("~:~dibs=fence");
    open();
    const auto given = peer.wait_for(
        peer.send({acquire_of("theirs", holder_of(1)), acquire_of("ours", holder_of(2))}));
    EXPECT_EQ(given[0].error, errc::permission_denied);
    EXPECT_EQ(given[0].took, effect::no);
    EXPECT_EQ(given[1].what, verdict::granted) << given[1].detail;
}

TEST_F(RedisRights, ADatabaseThatIsNotAllowedIsNamed) {
    change("-select");
    peer.options.where.database = 3;
    EXPECT_EQ(peer.open(), errc::permission_denied);
    EXPECT_NE(peer.detail.find("database 3"), std::string::npos) << peer.detail;
}

}  // namespace dibs::testing
