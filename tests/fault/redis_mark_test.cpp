// SPDX-License-Identifier: Apache-2.0
// The fences of keys of which nothing is left on the server: they rise by the mark of the database,
// also where its clock was set back. And what else a lease without a trace owes to everybody.

#include "redis_peer.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace dibs::testing {

namespace {

constexpr std::int64_t start_us = 1'790'000'000'000'000;
constexpr std::int64_t hour_us = 3'600'000'000;

core::acquire untraced_of(std::string_view key,
                          core::holder_id holder,
                          core::microseconds ttl = usual_ttl) {
    auto asked = acquire_of(key, holder, ttl);
    asked.traced = false;
    return asked;
}

struct RedisMark : ::testing::Test {
    void SetUp() override { ASSERT_EQ(peer.open(), std::error_code{}) << peer.detail; }

    core::fence_block take(std::string_view key, std::uint64_t holder) {
        const auto given = peer.ask(untraced_of(key, holder_of(holder)));
        EXPECT_EQ(given.what, verdict::granted) << given.detail;
        return given.fences;
    }
    core::answer give_back(std::string_view key, std::uint64_t holder) {
        return peer.ask(release_of(key, holder_of(holder)));
    }
    void step_back() { clock.advance(-2 * hour_us); }

    temporary_folder folder;
    server_clock clock{(folder.path() / "clock").string(), start_us};
    redis_server server{{"--appendonly", "yes", "--appendfsync", "always"}, &clock};
    redis_peer peer{server};
};

}  // namespace

TEST_F(RedisMark, AnUntracedLeaseLeavesTheMarkAlone) {
    take("k", 1);
    EXPECT_EQ(server.ask({"EXISTS", "{k}:~dibs"}), "0");
    EXPECT_EQ(peer.ask(renew_of("k", holder_of(1))).what, verdict::renewed);
    EXPECT_EQ(server.ask({"DBSIZE"}), "2");
    EXPECT_EQ(give_back("k", 1).what, verdict::released);
    EXPECT_EQ(server.ask({"DBSIZE"}), "1");
    EXPECT_EQ(server.ask({"TTL", ":~dibs=fence"}), "-1") << "it must not expire, nor be evicted";
}

TEST_F(RedisMark, FencesRiseThoughNothingIsLeftAndTheClockIsSetBack) {
    core::fence_number last = 0;
    std::uint64_t holder = 0;
    const auto rises = [&](const char* after) {
        step_back();
        const auto given = take("k", ++holder);
        EXPECT_GT(given.first, last) << after;
        last = given.last;
    };
    rises("the first");
    give_back("k", holder);
    rises("a release");
    clock.advance(hour_us);
    ASSERT_EQ(server.ask({"EXISTS", "k"}), "0");
    rises("expiry");
    ASSERT_EQ(server.ask({"DEL", "k"}), "1");
    rises("the lock was deleted");
    peer.ask(revoke_of("k", last));
    ASSERT_EQ(server.ask({"DEL", "{k}:~dibs"}), "1");
    rises("what was left was evicted");
    give_back("k", holder);
    ASSERT_EQ(server.ask({"SCRIPT", "FLUSH"}), "OK");
    rises("the script was forgotten");
    give_back("k", holder);
    auto more = untraced_of("k", holder_of(++holder));
    more.fences = 10;
    step_back();
    EXPECT_GT(peer.ask(more).fences.first, last);
    clock.advance(40 * hour_us);
    auto block = renew_of("k", holder_of(holder));
    more.ttl = 24h;
    peer.ask(more);
    block.fences = 10;
    clock.advance(1'000);
    more.holder = holder_of(++holder);
    more.key = "other";
    last = peer.ask(more).fences.last;
    block.key = "other";
    block.holder = more.holder;
    clock.advance(1'000);
    const auto extended = peer.ask(block);
    EXPECT_EQ(extended.fences.last - extended.fences.first, 9U);
    EXPECT_GT(extended.fences.first, last);
    give_back("other", holder);
    step_back();
    EXPECT_GT(take("other", ++holder).first, extended.fences.last) << "a block that was extended";
}

TEST_F(RedisMark, OutlivesARestart) {
    const auto given = take("k", 1);
    give_back("k", 1);
    server.kill();
    step_back();
    ASSERT_TRUE(server.start());
    const auto next = peer.insist(untraced_of("k", holder_of(2)));
    ASSERT_EQ(next.what, verdict::granted);
    EXPECT_GT(next.fences.first, given.last);
}

TEST_F(RedisMark, IsRaisedByGrantsThatLeaveMore) {
    const auto traced = peer.ask(acquire_of("k", holder_of(1)));
    ASSERT_EQ(traced.what, verdict::granted);
    give_back("k", 1);
    auto marked = acquire_of("m", holder_of(1));
    marked.mark = result_of("attempt", 0s, 1s);
    clock.advance(1'000);
    const auto with_mark = peer.ask(marked);
    give_back("m", 1);
    ASSERT_EQ(server.ask({"DEL", "{k}:~dibs"}), "1");
    ASSERT_EQ(server.ask({"DEL", "{m}:~dibs"}), "1");
    step_back();
    EXPECT_GT(take("k", 2).first, traced.fences.last);
    EXPECT_GT(take("m", 2).first, with_mark.fences.last);
}

TEST_F(RedisMark, AFloorFarAheadDoesNotLeadOtherKeys) {
    auto far = untraced_of("far", holder_of(1));
    far.floor = start_us + 1000 * hour_us;
    const auto given = peer.ask(far);
    ASSERT_EQ(given.fences.first, far.floor + 1);
    EXPECT_LE(take("near", 2).last, static_cast<core::fence_number>(start_us + 10));
    give_back("far", 1);
    EXPECT_GT(take("far", 3).first, given.fences.last);
}

TEST_F(RedisMark, TheBatchHasItsFencesOneByOne) {
    std::vector<core::verb> all;
    std::vector<core::verb> releases;
    for (std::uint64_t at = 0; at < 100; ++at) {
        all.emplace_back(untraced_of("k" + std::to_string(at), holder_of(at + 1)));
        releases.emplace_back(release_of("k" + std::to_string(at), holder_of(at + 1)));
    }
    std::vector<core::fence_number> before(all.size());
    for (int round = 0; round < 3; ++round) {
        // The second round finds the clock where it was, and the third finds it set back.
        if (round == 2) {
            step_back();
        }
        const auto given = peer.wait_for(peer.send(all));
        std::vector<core::fence_number> fences;
        for (std::size_t at = 0; at < all.size(); ++at) {
            ASSERT_EQ(given[at].what, verdict::granted) << given[at].detail;
            EXPECT_GT(given[at].fences.first, before[at]);
            before[at] = given[at].fences.last;
            fences.push_back(given[at].fences.first);
        }
        std::sort(fences.begin(), fences.end());
        EXPECT_EQ(std::adjacent_find(fences.begin(), fences.end()), fences.end());
        for (const auto& one : peer.wait_for(peer.send(releases))) {
            EXPECT_EQ(one.what, verdict::released);
        }
    }
}

TEST_F(RedisMark, OneKeyTwiceInABatchIsAnsweredInOrder) {
    const auto granted = peer.wait_for(peer.send({untraced_of("k", holder_of(1)),
                                                  untraced_of("k", holder_of(2)),
                                                  untraced_of("k", holder_of(1))}));
    EXPECT_EQ(granted[0].what, verdict::granted);
    EXPECT_EQ(granted[1].what, verdict::held);
    EXPECT_EQ(granted[2].what, verdict::granted) << "the same grant";
    EXPECT_EQ(granted[2].fences, granted[0].fences);
    const auto ended = peer.wait_for(peer.send({release_of("k", holder_of(2)),
                                                release_of("k", holder_of(1)),
                                                release_of("k", holder_of(1))}));
    EXPECT_EQ(ended[0].what, verdict::not_held);
    EXPECT_EQ(ended[1].what, verdict::released);
    EXPECT_EQ(ended[2].what, verdict::not_held);
}

TEST_F(RedisMark, IsOneForAllPrefixes) {
    redis_peer whole{server};
    ASSERT_EQ(whole.open(), std::error_code{});
    redis_peer part{server};
    part.options.where.prefix = "app:";
    ASSERT_EQ(part.open(), std::error_code{});
    const auto first = part.ask(untraced_of("job", holder_of(1)));
    ASSERT_EQ(part.ask(release_of("job", holder_of(1))).what, verdict::released);
    step_back();
    const auto second = whole.ask(untraced_of("app:job", holder_of(2)));
    EXPECT_GT(second.fences.first, first.fences.last) << "it is the same lock";
}

TEST_F(RedisMark, ThatIsNotOursStopsGrantsAlone) {
    take("k", 1);
    for (const auto& [text, error] : std::vector<std::pair<std::string, errc>>{
             {"42", errc::invalid_key},
             {"dibs1 nonsense-of-22-ch", errc::invalid_key},
             {"dibs1 x234567890123456", errc::invalid_key},
             {"dibs2 1790000000000000", errc::newer_format}}) {
        ASSERT_EQ(server.ask({"SET", ":~dibs=fence", text}), "OK");
        const auto refused = peer.ask(untraced_of("new", holder_of(2)));
        EXPECT_EQ(refused.took, effect::no) << text;
        EXPECT_EQ(refused.error, error) << refused.detail;
        EXPECT_EQ(peer.ask(acquire_of("new", holder_of(2))).error, error) << "traced";
        EXPECT_EQ(server.ask({"EXISTS", "new"}), "0");
        auto more = renew_of("k", holder_of(1));
        more.fences = 5;
        EXPECT_EQ(peer.ask(more).what, verdict::renewed) << "with the fences that it has";
    }
    EXPECT_EQ(give_back("k", 1).what, verdict::released);
}

TEST_F(RedisMark, AFullServerRefusesGrantsAndNothingElse) {
    take("k", 1);
    ASSERT_EQ(server.ask({"CONFIG", "SET", "maxmemory-policy", "volatile-lru"}), "OK");
    ASSERT_EQ(server.ask({"CONFIG", "SET", "maxmemory-policy", "noeviction"}), "OK");
    ASSERT_EQ(server.ask({"CONFIG", "SET", "maxmemory", "1"}), "OK");
    EXPECT_EQ(peer.ask(untraced_of("new", holder_of(2))).error, errc::store_refused);
    const auto together = peer.wait_for(peer.send({renew_of("k", holder_of(1)),
                                                   untraced_of("new", holder_of(2)),
                                                   untraced_of("newer", holder_of(3))}));
    EXPECT_EQ(together[0].what, verdict::renewed);
    EXPECT_EQ(together[1].error, errc::store_refused);
    EXPECT_EQ(together[2].error, errc::store_refused);
    auto more = renew_of("k", holder_of(1), 20s);
    more.fences = 5;
    EXPECT_EQ(peer.ask(more).what, verdict::renewed);
    EXPECT_EQ(give_back("k", 1).what, verdict::released);
    EXPECT_EQ(server.ask({"EXISTS", "k"}), "0");
}

TEST_F(RedisMark, IsNotEvictedWithWhatExpires) {
    const auto given = take("k", 1);
    ASSERT_EQ(server.ask({"CONFIG", "SET", "maxmemory-policy", "volatile-lru"}), "OK");
    ASSERT_EQ(server.ask({"CONFIG", "SET", "maxmemory", "1"}), "OK");
    ASSERT_EQ(server.ask({"SET", "more", "memory"}).substr(0, 3), "OOM");
    ASSERT_EQ(server.ask({"EXISTS", "k"}), "0") << "as the lease was";
    ASSERT_EQ(server.ask({"CONFIG", "SET", "maxmemory", "0"}), "OK");
    step_back();
    EXPECT_GT(take("k", 2).first, given.last);
}

TEST_F(RedisMark, AnUntracedLeaseIsHeldAsOthersAre) {
    const auto given = take("k", 1);
    EXPECT_EQ(peer.ask(acquire_of("k", holder_of(2))).what, verdict::held);
    EXPECT_EQ(peer.ask(renew_of("k", holder_of(2))).lost, loss::taken);
    EXPECT_EQ(peer.ask(untraced_of("k", holder_of(1))).fences, given) << "asked again";

    // Whoever stands in the queue gets it, and the lease goes on meanwhile.
    ASSERT_EQ(peer.ask(queued_acquire_of("k", holder_of(3))).position, 1U);
    EXPECT_EQ(peer.ask(renew_of("k", holder_of(1))).what, verdict::renewed);
    EXPECT_EQ(give_back("k", 1).what, verdict::released);
    EXPECT_EQ(peer.ask(untraced_of("k", holder_of(4))).what, verdict::held) << "not its turn";
    const auto next = peer.ask(queued_acquire_of("k", holder_of(3)));
    ASSERT_EQ(next.what, verdict::granted);
    EXPECT_GT(next.fences.first, given.last);
    EXPECT_EQ(give_back("k", 3).what, verdict::released);

    // A hold that is set during the lease outlives it.
    take("held back", 1);
    ASSERT_EQ(peer.ask(block_of("held back", 1h, "upgrade")).what, verdict::block_set);
    EXPECT_EQ(peer.ask(renew_of("held back", holder_of(1))).what, verdict::renewed);
    EXPECT_EQ(give_back("held back", 1).what, verdict::released);
    EXPECT_EQ(peer.ask(untraced_of("held back", holder_of(2))).what, verdict::blocked);

    // A result.
    take("done", 1);
    ASSERT_EQ(peer.ask(finish_of("done", holder_of(1), result_of("r", 1h, 1h))).what,
              verdict::finished);
    EXPECT_EQ(peer.ask(untraced_of("done", holder_of(2))).what, verdict::done);

    // A new holder, with a fence of its own.
    const auto before = take("adopted", 1);
    clock.advance(1'000);
    auto adopts = renew_of("adopted", holder_of(1), 30s);
    adopts.adopt = core::renew::change{holder_of(2), core::attachment::detached};
    adopts.fences = 1;
    const auto adopted = peer.ask(adopts);
    ASSERT_EQ(adopted.what, verdict::renewed);
    EXPECT_GT(adopted.fences.first, before.last);
    EXPECT_EQ(give_back("adopted", 1).what, verdict::not_held);
    EXPECT_EQ(peer.ask(renew_of("adopted", holder_of(2), 30s)).what, verdict::renewed);
    EXPECT_EQ(give_back("adopted", 2).what, verdict::released);
}

TEST_F(RedisMark, ARenewalForAnotherTtlIsRemembered) {
    take("k", 1);
    ASSERT_EQ(peer.ask(renew_of("k", holder_of(1), 60s)).what, verdict::renewed);
    ASSERT_EQ(server.ask({"PERSIST", "k"}), "1");
    EXPECT_EQ(peer.ask(acquire_of("k", holder_of(2))).what, verdict::held);
    // By when it was promised is not known, so it is not over before that.
    clock.advance(59'000'000);
    EXPECT_EQ(peer.ask(acquire_of("k", holder_of(2))).what, verdict::held);
    clock.advance(2'000'000);
    EXPECT_EQ(peer.ask(acquire_of("k", holder_of(2))).what, verdict::granted);
}

TEST_F(RedisMark, AnUntracedLeaseIsListedAmongOtherKeys) {
    for (int at = 0; at < 50; ++at) {
        ASSERT_EQ(server.ask({"SET", "cache:" + std::to_string(at), "something"}), "OK");
    }
    ASSERT_EQ(server.ask({"LPUSH", "k-list", "x"}), "1");
    const auto given = take("k", 1);
    take("other", 2);
    std::optional<core::page> told;
    peer.opened->list("k", "", 100, [&](core::page page) { told = std::move(page); });
    ASSERT_TRUE(peer.world.run_until([&] { return told.has_value(); }));
    ASSERT_EQ(told->records.size(), 1U) << told->detail;
    EXPECT_EQ(told->records[0].key, "k");
    EXPECT_EQ(told->records[0].fence, given.last);
    ASSERT_EQ(told->records[0].holders.size(), 1U);
    EXPECT_EQ(told->records[0].holders[0].who.host, "here");
}

// What a release before the mark left: a lock and a rest with a fence that the mark does not know.
TEST_F(RedisMark, ARecordOfAnEarlierReleaseIsCarriedOn) {
    const std::string fence = std::to_string(start_us + hour_us);
    const auto holder = holder_of(1).text();
    ASSERT_EQ(server.ask({"SET",
                          "k",
                          "dibs1 " + holder + " " + fence + " " + fence + " " +
                              std::to_string(start_us) + " A 0123456789abcdef host",
                          "PX",
                          "10000"}),
              "OK");
    ASSERT_EQ(server.ask({"SET",
                          "{k}:~dibs",
                          "dibs1 " + holder + " " + fence + " " +
                              std::to_string(start_us + 10'000'000) + " 0",
                          "PX",
                          "3611000"}),
              "OK");
    EXPECT_EQ(peer.ask(renew_of("k", holder_of(1))).what, verdict::renewed);
    EXPECT_EQ(give_back("k", 1).what, verdict::released);
    EXPECT_GT(take("k", 2).first, static_cast<core::fence_number>(start_us + hour_us));
}

}  // namespace dibs::testing
