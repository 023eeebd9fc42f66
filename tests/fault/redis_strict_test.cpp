// SPDX-License-Identifier: Apache-2.0
// guarantee=strict on real servers: one that begins anew, that is promoted, and that comes back,
// grants nothing until the leases of before are over.

#include "redis_peer.hpp"

#include <string>
#include <utility>

namespace dibs::testing {

namespace {

constexpr core::microseconds longest = 2s;
constexpr std::int64_t start_us = 1'764'000'000'000'000;

struct RedisStrict : ::testing::Test {
    core::answer grant_of(redis_peer& through, const std::string& key, std::uint64_t holder = 1) {
        return through.insist(acquire_of(key, holder_of(holder), 1s));
    }
    void open_strict(redis_peer& which) {
        which.options.where.longest_ttl = longest;
        ASSERT_EQ(which.open(), std::error_code{}) << which.detail;
    }

    temporary_folder folder;
    server_clock clock{(folder.path() / "clock").string(), start_us};
};

}  // namespace

TEST_F(RedisStrict, GrantsNothingUntilTheLeasesOfBeforeAreOver) {
    redis_server server{{}, &clock};
    redis_peer peer{server};
    open_strict(peer);
    auto first = grant_of(peer, "k");
    ASSERT_EQ(first.what, verdict::not_ready) << "nobody knows what was before";
    EXPECT_EQ(first.retry_after, longest);
    EXPECT_NE(first.detail.find("begun anew"), std::string::npos) << first.detail;
    clock.advance(1'999'999);
    EXPECT_EQ(grant_of(peer, "k").what, verdict::not_ready);
    clock.advance(1);
    EXPECT_EQ(grant_of(peer, "k").what, verdict::granted);

    server.kill();
    ASSERT_TRUE(server.start());
    const auto lost = peer.insist(renew_of("k", holder_of(1)));
    EXPECT_EQ(lost.what, verdict::not_held) << "it kept nothing";
    EXPECT_EQ(grant_of(peer, "k", 2).what, verdict::not_ready) << "the holder may not know yet";
    clock.advance(longest.count());
    EXPECT_EQ(grant_of(peer, "k", 2).what, verdict::granted);
}

TEST_F(RedisStrict, AnEpochThatCannotBeReadIsNotGuessedAt) {
    redis_server server{{}, &clock};
    redis_peer peer{server};
    open_strict(peer);
    for (const auto& [epoch, error] : {std::pair{"dibs1 x", errc::invalid_key},
                                       std::pair{"junk", errc::invalid_key},
                                       std::pair{"dibs2 x", errc::newer_format}}) {
        ASSERT_EQ(server.ask({"SET", ":~dibs=epoch", epoch}), "OK");
        const auto refused = peer.ask(acquire_of("k", holder_of(1), 1s));
        EXPECT_EQ(refused.took, effect::no) << epoch;
        EXPECT_EQ(refused.error, error) << refused.detail;
    }
}

TEST_F(RedisStrict, IsNotFooledByARestartThatKeepsEverything) {
    redis_server server{{"--appendonly", "yes", "--appendfsync", "always"}, &clock};
    redis_peer peer{server};
    open_strict(peer);
    (void)grant_of(peer, "k");
    clock.advance(longest.count());
    ASSERT_EQ(grant_of(peer, "k").what, verdict::granted);
    server.kill();
    ASSERT_TRUE(server.start());
    EXPECT_EQ(peer.insist(renew_of("k", holder_of(1), 1s)).what, verdict::renewed)
        << "holders go on";
    auto adoption = renew_of("k", holder_of(1), 1s);
    adoption.adopt = core::renew::change{holder_of(9)};
    const auto adopted = peer.insist(adoption);
    EXPECT_EQ(adopted.what, verdict::not_ready) << "another one may have been forgotten";
    EXPECT_GT(adopted.retry_after, 0s);
    adoption.adopt->holder = holder_of(1);
    EXPECT_EQ(peer.insist(adoption).what, verdict::renewed) << "handing over is no grant";
    EXPECT_EQ(grant_of(peer, "other").what, verdict::not_ready);
    clock.advance(longest.count());
    EXPECT_EQ(grant_of(peer, "other").what, verdict::granted);
}

TEST_F(RedisStrict, TheLongestTtlOfAllIsTheQuarantine) {
    redis_server server{{"--appendonly", "yes", "--appendfsync", "always"}, &clock};
    redis_peer peer{server};
    open_strict(peer);
    redis_peer generous{server};
    generous.options.where.longest_ttl = 5 * longest;
    ASSERT_EQ(generous.open(), std::error_code{}) << generous.detail;
    (void)grant_of(peer, "k");
    clock.advance(longest.count());
    ASSERT_EQ(grant_of(generous, "k").what, verdict::granted) << "what is granted now is known";
    server.kill();
    ASSERT_TRUE(server.start());
    EXPECT_EQ(grant_of(peer, "other").retry_after, 5 * longest);
}

TEST_F(RedisStrict, APromotedReplicaAndAFormerPrimaryWait) {
    redis_server primary{{"--repl-diskless-sync-delay", "0"}, &clock};
    redis_server replica{{}, &clock};
    redis_peer peer{primary};
    open_strict(peer);
    redis_peer other{replica};
    open_strict(other);
    ASSERT_TRUE(
        replica.ask({"REPLICAOF", "127.0.0.1", std::to_string(primary.port())}).starts_with("OK"));
    ASSERT_TRUE(eventually([&] {
        return replica.ask({"INFO", "replication"}).find("master_link_status:up") !=
               std::string::npos;
    }));
    // A server with its first replica has another id: a needless wait.
    ASSERT_EQ(grant_of(peer, "k").what, verdict::not_ready);
    clock.advance(longest.count());
    replica.freeze();
    (void)primary.ask({"CLIENT", "KILL", "TYPE", "replica"});
    ASSERT_EQ(grant_of(peer, "k").what, verdict::granted) << "the replica will not know of it";
    primary.freeze();
    replica.thaw();
    ASSERT_TRUE(replica.ask({"REPLICAOF", "NO", "ONE"}).starts_with("OK"));
    EXPECT_EQ(grant_of(other, "k", 2).what, verdict::not_ready);
    clock.advance(longest.count());
    EXPECT_EQ(grant_of(other, "k", 2).what, verdict::granted);

    // And back, with what the former primary had: it follows, so that its id is the other's, and is
    // promoted again.
    primary.thaw();
    ASSERT_TRUE(primary.ask({"REPLICAOF", "127.0.0.1", "1"}).starts_with("OK"));
    ASSERT_TRUE(primary.ask({"REPLICAOF", "NO", "ONE"}).starts_with("OK"));
    EXPECT_EQ(grant_of(peer, "another").what, verdict::not_ready);
}

TEST_F(RedisStrict, IsRefusedWhereTheServerMayDeleteLocks) {
    const redis_server server{{"--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"}};
    redis_peer peer{server};
    peer.options.where.longest_ttl = longest;
    EXPECT_EQ(peer.open(), make_error_code(errc::store_refused));
    EXPECT_NE(peer.detail.find("noeviction"), std::string::npos) << peer.detail;
}

TEST_F(RedisStrict, LimitsTheTtl) {
    const redis_server server{{}, &clock};
    redis_peer peer{server};
    open_strict(peer);
    EXPECT_EQ(peer.opened->caps().ttl_max, longest);
}

}  // namespace dibs::testing
