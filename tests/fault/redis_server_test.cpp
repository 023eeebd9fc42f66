// SPDX-License-Identifier: Apache-2.0
// The Redis store while its server fails: real servers, killed, frozen, flushed, filled up and
// forbidden. What must hold: an effect is told as yes, no or unknown, and each of them is true.

#include "redis_peer.hpp"

#include <optional>
#include <thread>

namespace dibs::testing {

namespace {

struct RedisFault : ::testing::Test {
    void open() { ASSERT_EQ(peer.open(), std::error_code{}) << peer.detail; }
    std::error_code error_of_a_look(const std::string& key, std::size_t limit = 1) {
        std::optional<core::page> told;
        peer.opened->list(key, {}, limit, [&](core::page page) { told = std::move(page); });
        EXPECT_TRUE(peer.world.run_until([&] { return told.has_value(); }));
        return told ? told->error : errc::timed_out;
    }

    redis_server server;
    redis_peer peer{server};
};

/// As many as a batch may have.
std::vector<core::verb> many_acquires(int from, int count = 256) {
    std::vector<core::verb> all;
    for (int at = from; at < from + count; ++at) {
        all.emplace_back(
            acquire_of("k" + std::to_string(at), holder_of(static_cast<std::uint64_t>(at) + 1)));
    }
    return all;
}

}  // namespace

TEST_F(RedisFault, AKilledServerLeavesOnlyTrueAnswers) {
    open();
    for (int round = 0; round < 5; ++round) {
        std::vector<std::shared_ptr<std::optional<store::answers>>> sent;
        for (int batch = 0; batch < 20; ++batch) {
            sent.push_back(peer.send(many_acquires(batch * 256)));
        }
        // Some are answered, some are on their way, some were not written.
        ASSERT_TRUE(peer.world.run_until([&] { return sent[0]->has_value(); }));
        server.kill();
        int known = 0;
        int in_doubt = 0;
        for (const auto& told : sent) {
            for (const auto& one : peer.wait_for(told)) {
                known += one.took == effect::yes ? 1 : 0;
                in_doubt += one.took == effect::unknown ? 1 : 0;
                EXPECT_TRUE(one.took != effect::yes || one.what == verdict::granted ||
                            one.what == verdict::held);
                EXPECT_TRUE(one.took == effect::yes || one.error) << "no reason";
                if (one.took == effect::no) {
                    EXPECT_EQ(one.error, condition::retryable) << one.detail;
                } else if (one.took == effect::unknown) {
                    EXPECT_EQ(one.error, condition::outcome_unknown);
                }
            }
        }
        EXPECT_GE(known, 256);
        RecordProperty("in_doubt", in_doubt);
        ASSERT_TRUE(server.start());
        EXPECT_EQ(peer.insist(acquire_of("after", holder_of(9'000'000))).what, verdict::granted);
        ASSERT_EQ(server.ask({"FLUSHALL"}), "OK");
    }
}

TEST_F(RedisFault, AServerThatComesBackEmptyKnowsNoLease) {
    open();
    const auto granted = peer.ask(acquire_of("k", holder_of(1)));
    ASSERT_EQ(granted.what, verdict::granted);
    server.kill();
    ASSERT_TRUE(server.start());
    const auto told = peer.insist(renew_of("k", holder_of(1)));
    EXPECT_EQ(told.what, verdict::not_held);
    EXPECT_EQ(told.lost, loss::gone);
    const auto next = peer.ask(acquire_of("k", holder_of(2)));
    ASSERT_EQ(next.what, verdict::granted);
    EXPECT_GT(next.fences.first, granted.fences.last) << "nothing was kept but the clock";
}

TEST(RedisFaults, AServerThatSavesEachStepComesBackWithTheLease) {
    redis_server server{{"--appendonly", "yes", "--appendfsync", "always"}};
    redis_peer peer{server};
    ASSERT_EQ(peer.open(), std::error_code{}) << peer.detail;
    auto asked = acquire_of("k", holder_of(1), 60s);
    asked.mark = result_of("under way", 0s, 1h);
    const auto granted = peer.ask(asked);
    ASSERT_EQ(granted.what, verdict::granted);
    server.kill();
    ASSERT_TRUE(server.start());
    EXPECT_EQ(peer.insist(acquire_of("k", holder_of(2))).what, verdict::held);
    const auto renewed = peer.ask(renew_of("k", holder_of(1)));
    EXPECT_EQ(renewed.what, verdict::renewed);
    EXPECT_EQ(renewed.fences, granted.fences);
    ASSERT_TRUE(renewed.result);
    EXPECT_EQ(renewed.result->value, "under way");
}

TEST_F(RedisFault, AForgottenScriptIsSentAgainWithoutASecondEffect) {
    open();
    for (int round = 0; round < 50; ++round) {
        const auto holder = holder_of(static_cast<std::uint64_t>(round) + 1);
        ASSERT_EQ(server.ask({"SCRIPT", "FLUSH"}), "OK");
        const auto granted = peer.ask(acquire_of("k", holder));
        ASSERT_EQ(granted.what, verdict::granted) << granted.detail;
        ASSERT_EQ(server.ask({"SCRIPT", "FLUSH"}), "OK");
        ASSERT_EQ(peer.ask(renew_of("k", holder)).fences, granted.fences);
        ASSERT_EQ(server.ask({"SCRIPT", "FLUSH"}), "OK");
        ASSERT_EQ(peer.ask(release_of("k", holder)).what, verdict::released);
        ASSERT_EQ(server.ask({"EXISTS", "k"}), "0");
    }
}

TEST_F(RedisFault, AFlushedOrDeletedLeaseIsGone) {
    open();
    peer.ask(acquire_of("flushed", holder_of(1)));
    ASSERT_EQ(server.ask({"FLUSHALL"}), "OK");
    EXPECT_EQ(peer.ask(renew_of("flushed", holder_of(1))).lost, loss::gone);
    peer.ask(acquire_of("deleted", holder_of(1)));
    ASSERT_EQ(server.ask({"DEL", "deleted"}), "1");
    EXPECT_EQ(peer.ask(renew_of("deleted", holder_of(1))).lost, loss::gone) << "it had time left";
    // The other way round: the lock is there, the rest of the record is not.
    const auto granted = peer.ask(acquire_of("halved", holder_of(1)));
    ASSERT_EQ(server.ask({"DEL", "{halved}:~dibs"}), "1");
    EXPECT_EQ(peer.ask(acquire_of("halved", holder_of(2))).what, verdict::held);
    EXPECT_EQ(peer.ask(renew_of("halved", holder_of(1))).fences, granted.fences);
    EXPECT_EQ(peer.ask(release_of("halved", holder_of(1))).what, verdict::released);
}

TEST_F(RedisFault, AConnectionThatIsCutIsMadeAgain) {
    open();
    int wakes = 0;
    bool ready = false;
    const auto id = peer.opened->watch(
        "k", [&](std::error_code error) { ready = !error; }, [&](auto) { ++wakes; });
    ASSERT_TRUE(peer.world.run_until([&] { return ready; }));
    for (int round = 0; round < 10; ++round) {
        const auto before = wakes;
        ASSERT_NE(server.ask({"CLIENT", "KILL", "TYPE", "pubsub"}), "0");
        EXPECT_TRUE(peer.world.run_until([&] { return wakes > before; }))
            << "what was said while nobody listened is lost, so everybody looks again";
        ASSERT_EQ(server.ask({"CLIENT", "KILL", "TYPE", "normal"}).substr(0, 2).empty(), false);
        EXPECT_EQ(peer.insist(acquire_of("k", holder_of(1))).what, verdict::granted);
        const auto woken = wakes;
        EXPECT_EQ(peer.insist(release_of("k", holder_of(1))).what, verdict::released);
        EXPECT_TRUE(peer.world.run_until([&] { return wakes > woken; }));
    }
    peer.opened->unwatch(id);
}

TEST_F(RedisFault, ACallerThatOnlyWaitsLendsNoThread) {
    open();
    bool ready = false;
    peer.opened->begin_assist();
    const auto id = peer.opened->watch(
        "k", [&](std::error_code) { ready = true; }, [](auto) {});
    // Whether the other thread takes part or not, what is asked for comes.
    ASSERT_TRUE(peer.world.run_until([&] {
        while (!ready && peer.opened->assist()) {
        }
        return ready;
    }));
    peer.opened->end_assist();
    peer.opened->begin_assist();  // what was lent is limited in time
    EXPECT_FALSE(peer.opened->assist()) << "it would sleep, and nobody could call it back";
    peer.opened->end_assist();
    EXPECT_EQ(peer.ask(acquire_of("k", holder_of(1))).what, verdict::granted);
    peer.opened->unwatch(id);
}

TEST_F(RedisFault, AFrozenServerIsDoubtAndThenTold) {
    open();
    ASSERT_EQ(peer.ask(acquire_of("k", holder_of(1), 60s)).what, verdict::granted);
    server.freeze();
    const auto sent = peer.send(many_acquires(0, 1));
    const auto answers = peer.wait_for(sent);
    EXPECT_EQ(answers.front().took, effect::unknown) << "it may be executed when it wakes up";
    EXPECT_EQ(peer.ask(acquire_of("later", holder_of(3)), 100ms).took, effect::no)
        << "nothing was sent: the new connection is not greeted";
    server.thaw();
    // What was in doubt is settled by the holder id.
    const auto settled = peer.insist(release_of("k0", holder_of(1)));
    EXPECT_TRUE(settled.what == verdict::released || settled.what == verdict::not_held);
    EXPECT_EQ(peer.insist(renew_of("k", holder_of(1))).what, verdict::renewed);
    EXPECT_EQ(server.ask({"EXISTS", "later"}), "0");
}

TEST_F(RedisFault, AKeyOfAnotherTypeFailsAlone) {
    open();
    ASSERT_EQ(server.ask({"RPUSH", "list", "x"}), "1");
    ASSERT_EQ(server.ask({"SET", "{hash}:~dibs", "x"}), "OK");
    const auto given = peer.wait_for(peer.send({acquire_of("before", holder_of(1)),
                                                acquire_of("list", holder_of(2)),
                                                acquire_of("hash", holder_of(3)),
                                                acquire_of("after", holder_of(4))}));
    EXPECT_EQ(given[0].what, verdict::granted);
    for (const auto at : {1U, 2U}) {
        EXPECT_EQ(given[at].what, verdict::failed);
        EXPECT_EQ(given[at].took, effect::no);
        EXPECT_EQ(given[at].error, errc::invalid_key) << given[at].detail;
    }
    EXPECT_EQ(given[3].what, verdict::granted);
    EXPECT_EQ(server.ask({"LRANGE", "list", "0", "-1"}), "[x]");
    EXPECT_EQ(server.ask({"EXISTS", "hash", "{list}:~dibs"}), "0") << "nothing was left behind";
    // Also when it is the first of its batch.
    EXPECT_EQ(peer.ask(acquire_of("hash", holder_of(3))).error, errc::invalid_key);
}

TEST_F(RedisFault, ADamagedRecordIsRefusedBeforeAnythingIsDone) {
    open();
    const std::string nobody(32, '0');
    const auto number = std::string(16, '1');
    const auto first = "dibs1 " + nobody + " " + number + " " + number + " 0";
    // What an APPEND, a SETRANGE or a value that was cut off leave of it.
    for (const auto& rest : {first + "x",
                             first + " 0 0 0 0 0 0 0 5",
                             first + " 0 0 0 0 0 0 0 5 abc",
                             "dibs1 " + nobody + " " + number + " 1 0 0 0 0 0 0 0 0 0 "}) {
        ASSERT_EQ(server.ask({"SET", "{k}:~dibs", rest}), "OK");
        const auto given = peer.wait_for(peer.send({acquire_of("k", holder_of(1)),
                                                    acquire_of("other", holder_of(2)),
                                                    release_of("other", holder_of(2))}));
        EXPECT_EQ(given[0].took, effect::no) << rest;
        EXPECT_EQ(given[0].error, errc::invalid_key) << given[0].detail;
        EXPECT_NE(given[0].detail.find("{k}:~dibs"), std::string::npos) << given[0].detail;
        EXPECT_EQ(given[1].what, verdict::granted) << given[1].detail;
        EXPECT_EQ(error_of_a_look("k"), errc::invalid_key);
        EXPECT_EQ(server.ask({"GET", "{k}:~dibs"}), rest);
        EXPECT_EQ(server.ask({"EXISTS", "k"}), "0");
    }
}

TEST_F(RedisFault, SharesThatAreCutOffKeepEverybodyOut) {
    open();
    auto wanted = acquire_of("k", holder_of(1));
    wanted.part.capacity = 3;
    ASSERT_EQ(peer.insist(wanted).what, verdict::granted);
    const auto whole = server.ask({"GET", "k"});
    wanted.holder = holder_of(2);
    for (const auto& left :
         {whole.substr(0, whole.size() - 1), std::string("dibs1 s 3 "), std::string("dibs1 s x")}) {
        ASSERT_EQ(server.ask({"SET", "k", left, "PX", "60000"}), "OK");
        for (const auto& asked : {wanted, acquire_of("k", holder_of(3))}) {
            const auto given = peer.ask(asked);
            EXPECT_EQ(given.took, effect::no) << left;
            EXPECT_EQ(given.error, errc::invalid_key) << given.detail;
        }
        EXPECT_EQ(server.ask({"GET", "k"}), left);
    }
}

TEST_F(RedisFault, AFullServerRefusesGrantsAndNothingElse) {
    open();
    ASSERT_EQ(peer.ask(acquire_of("k", holder_of(1))).what, verdict::granted);
    ASSERT_EQ(peer.ask(acquire_of("k2", holder_of(2))).what, verdict::granted);
    ASSERT_EQ(server.ask({"CONFIG", "SET", "maxmemory", "1"}), "OK");
    const auto refused = peer.ask(acquire_of("new", holder_of(3)));
    EXPECT_EQ(refused.took, effect::no);
    EXPECT_EQ(refused.error, errc::store_refused);
    EXPECT_EQ(refused.error, condition::retryable);
    EXPECT_NE(refused.detail.find("maxmemory"), std::string::npos) << refused.detail;
    auto more = renew_of("k", holder_of(1), 30s);
    more.fences = 10;
    EXPECT_EQ(peer.ask(more).what, verdict::renewed) << "with the fences that it has";
    EXPECT_EQ(peer.ask(release_of("k", holder_of(1))).what, verdict::released);
    const auto unfinished = peer.ask(finish_of("k2", holder_of(2), result_of("r", 1h, 1h)));
    EXPECT_EQ(unfinished.took, effect::no);
    EXPECT_EQ(peer.ask(renew_of("k2", holder_of(2))).what, verdict::renewed) << "still held";
    EXPECT_EQ(peer.ask(block_of("k3", 1h, "x")).error, errc::store_refused);
    // A server that is full refuses the first write of a script alone: not so ours.
    const auto together =
        peer.wait_for(peer.send({renew_of("k2", holder_of(2)), acquire_of("new", holder_of(3))}));
    EXPECT_EQ(together[0].what, verdict::renewed);
    EXPECT_EQ(together[1].error, errc::store_refused);
    ASSERT_EQ(server.ask({"CONFIG", "SET", "maxmemory", "0"}), "OK");
    EXPECT_EQ(peer.ask(acquire_of("new", holder_of(3))).what, verdict::granted);
    EXPECT_EQ(peer.ask(acquire_of("k", holder_of(4))).what, verdict::granted);
}

TEST_F(RedisFault, AFullServerRenewsSharesAndTakesThemBack) {
    open();
    for (std::uint64_t number = 1; number <= 3; ++number) {
        ASSERT_EQ(peer.ask(shared_acquire_of("k", holder_of(number), 1, 5)).what, verdict::granted);
    }
    ASSERT_EQ(server.ask({"CONFIG", "SET", "maxmemory", "1"}), "OK");
    EXPECT_EQ(peer.ask(shared_acquire_of("k", holder_of(4), 1, 5)).error, errc::store_refused);
    EXPECT_EQ(peer.ask(renew_of("k", holder_of(1), 1h)).what, verdict::renewed);
    EXPECT_GT(std::stol(server.ask({"PTTL", "k"})), 3'000'000);
    EXPECT_EQ(peer.ask(release_of("k", holder_of(1))).what, verdict::released);
    EXPECT_LT(std::stol(server.ask({"PTTL", "k"})), 3'000'000) << "as long as the others";
    EXPECT_EQ(peer.ask(renew_of("k", holder_of(2))).what, verdict::renewed);
    EXPECT_EQ(peer.ask(release_of("k", holder_of(2))).what, verdict::released);
    EXPECT_EQ(peer.ask(release_of("k", holder_of(3))).what, verdict::released);
    EXPECT_EQ(server.ask({"EXISTS", "k"}), "0");
    ASSERT_EQ(server.ask({"CONFIG", "SET", "maxmemory", "0"}), "OK");
    EXPECT_EQ(peer.ask(shared_acquire_of("k", holder_of(4), 1, 5)).what, verdict::granted);
}

TEST_F(RedisFault, SharesAndTheLocksOfOtherProgramsKeepEachOtherOut) {
    open();
    ASSERT_EQ(server.ask({"SET", "k", "theirs", "NX", "PX", "600000"}), "OK");
    const auto refused = peer.ask(shared_acquire_of("k", holder_of(1), 1, core::share::unlimited));
    EXPECT_EQ(refused.what, verdict::held);
    ASSERT_EQ(refused.holders.size(), 1U);
    EXPECT_EQ(refused.holders[0].fences.first, 0U);
    ASSERT_EQ(server.ask({"DEL", "k"}), "1");
    for (std::uint64_t number = 1; number <= 2; ++number) {
        ASSERT_EQ(
            peer.ask(shared_acquire_of("k", holder_of(number), 1, core::share::unlimited)).what,
            verdict::granted);
    }
    EXPECT_NE(server.ask({"SET", "k", "theirs", "NX", "PX", "600000"}), "OK");
    ASSERT_EQ(peer.ask(release_of("k", holder_of(1))).what, verdict::released);
    EXPECT_NE(server.ask({"SET", "k", "theirs", "NX", "PX", "600000"}), "OK");
    ASSERT_EQ(peer.ask(release_of("k", holder_of(2))).what, verdict::released);
    EXPECT_EQ(server.ask({"SET", "k", "theirs", "NX", "PX", "600000"}), "OK");
}

TEST_F(RedisFault, AFullServerForgetsWhoGaveTheKeyBack) {
    open();
    ASSERT_EQ(peer.ask(acquire_of("k", holder_of(1), 1s)).what, verdict::granted);
    ASSERT_EQ(server.ask({"CONFIG", "SET", "maxmemory", "1"}), "OK");
    ASSERT_EQ(peer.ask(release_of("k", holder_of(1))).what, verdict::released);
    ASSERT_EQ(server.ask({"CONFIG", "SET", "maxmemory", "0"}), "OK");
    EXPECT_EQ(peer.ask(finish_of("k", holder_of(1), result_of("r", 0s, 1h), true)).what,
              verdict::not_held);
    EXPECT_EQ(peer.ask(renew_of("k", holder_of(1))).lost, loss::gone);
}

TEST_F(RedisFault, AHoldThatIsSetDuringALeaseOutlivesIt) {
    open();
    ASSERT_EQ(peer.ask(acquire_of("k", holder_of(1))).what, verdict::granted);
    const auto plain = server.ask({"GET", "k"});
    ASSERT_EQ(peer.ask(block_of("k", 5h, "upgrade")).what, verdict::block_set);
    EXPECT_NE(server.ask({"GET", "k"}), plain)
        << "whoever gives it back must see that there is more";
    EXPECT_GT(std::stol(server.ask({"PTTL", "k"})), 0);
    ASSERT_EQ(peer.ask(renew_of("k", holder_of(1))).what, verdict::renewed);
    ASSERT_EQ(peer.ask(release_of("k", holder_of(1))).what, verdict::released);
    EXPECT_GT(std::stol(server.ask({"PTTL", "{k}:~dibs"})), 4 * 3'600'000);
    const auto refused = peer.ask(acquire_of("k", holder_of(2)));
    EXPECT_EQ(refused.what, verdict::blocked);
    EXPECT_EQ(refused.reason, "upgrade");
}

TEST_F(RedisFault, AReleaseKeepsTheFenceOfALeaseWhoseRestIsLost) {
    open();
    const auto granted = peer.ask(acquire_of("k", holder_of(1)));
    ASSERT_EQ(server.ask({"DEL", "{k}:~dibs"}), "1");
    ASSERT_EQ(peer.ask(release_of("k", holder_of(1))).what, verdict::released);
    EXPECT_NE(server.ask({"GET", "{k}:~dibs"}).find(std::to_string(granted.fences.last)),
              std::string::npos);
    EXPECT_GT(std::stol(server.ask({"PTTL", "{k}:~dibs"})), 3'000'000);
}

TEST_F(RedisFault, AReplicaIsNotBelieved) {
    open();
    ASSERT_EQ(peer.ask(acquire_of("k", holder_of(1))).what, verdict::granted);
    // It is made one while it is in use, with an empty primary to copy.
    const redis_server primary;
    ASSERT_EQ(server.ask({"REPLICAOF", "127.0.0.1", std::to_string(primary.port())}), "OK");
    for (const core::verb& what : std::vector<core::verb>{renew_of("k", holder_of(1)),
                                                          release_of("k", holder_of(1)),
                                                          acquire_of("k", holder_of(2))}) {
        const auto refused = peer.ask(what);
        EXPECT_EQ(refused.took, effect::no) << refused.detail;
        EXPECT_EQ(refused.error, errc::store_refused) << refused.detail;
    }
    redis_peer late{server};
    EXPECT_EQ(late.open(), errc::store_refused) << late.detail;
}

TEST(RedisFaults, AServerThatCannotSaveRefuses) {
    redis_server server;
    redis_peer peer{server};
    ASSERT_EQ(peer.open(), std::error_code{}) << peer.detail;
    ASSERT_EQ(server.ask({"CONFIG", "SET", "min-replicas-to-write", "1"}), "OK");
    const auto refused = peer.ask(acquire_of("k", holder_of(1)));
    EXPECT_EQ(refused.took, effect::no);
    EXPECT_EQ(refused.error, errc::store_refused) << refused.detail;
    EXPECT_NE(refused.detail.find("replicas"), std::string::npos) << refused.detail;
}

TEST(RedisFaults, AWrongPasswordIsDeniedAndNotShown) {
    redis_server server{{"--requirepass", "right"}};
    redis_peer peer{server};
    EXPECT_EQ(peer.open(), errc::permission_denied) << "none at all";
    EXPECT_NE(peer.detail.find("asks for a password"), std::string::npos) << peer.detail;
    peer.options.where.password = "wr0ng-secret";
    EXPECT_EQ(peer.open(), errc::permission_denied);
    EXPECT_EQ(peer.detail.find("wr0ng-secret"), std::string::npos) << peer.detail;
    peer.options.where.password = "right";
    EXPECT_EQ(peer.open(), std::error_code{}) << peer.detail;
    EXPECT_EQ(peer.ask(acquire_of("k", holder_of(1))).what, verdict::granted);
}

TEST_F(RedisFault, AServerThatLoadsItsDataSaysSo) {
    open();
    ASSERT_EQ(server.ask({"SET", "a", "b"}), "OK");
    ASSERT_EQ(server.ask({"CONFIG", "SET", "key-load-delay", "20000"}), "OK");
    ASSERT_EQ(server.ask({"CONFIG", "SET", "loading-process-events-interval-bytes", "1024"}), "OK");
    ASSERT_EQ(server.ask({"DEBUG", "POPULATE", "200", "filler", "1000"}), "OK");
    std::jthread reload{[&] { server.ask({"DEBUG", "RELOAD"}); }};
    ASSERT_TRUE(eventually([&] { return server.ask({"GET", "a"}).starts_with("LOADING"); }));
    const auto refused = peer.ask(acquire_of("k", holder_of(1)));
    EXPECT_EQ(refused.took, effect::no);
    EXPECT_EQ(refused.error, errc::store_busy) << refused.detail;
    EXPECT_NE(refused.detail.find("loading"), std::string::npos) << refused.detail;
    reload.join();
    EXPECT_EQ(peer.insist(acquire_of("k", holder_of(1))).what, verdict::granted);
}

TEST_F(RedisFault, AStolenTtlIsNoLeaseForEver) {
    open();
    ASSERT_EQ(peer.ask(acquire_of("k", holder_of(1), 300ms)).what, verdict::granted);
    ASSERT_EQ(server.ask({"PERSIST", "k"}), "1");
    EXPECT_EQ(peer.ask(acquire_of("k", holder_of(2))).what, verdict::held);
    EXPECT_TRUE(eventually(
        [&] { return peer.ask(acquire_of("k", holder_of(2))).what == verdict::granted; }));
}

// --- others on the same key ----------------------------------------------------------------------

namespace {

const std::string compare_and_delete =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 "
    "end";

}  // namespace

TEST_F(RedisFault, AQueueStandsBehindAPlainLock) {
    open();
    ASSERT_EQ(server.ask({"SET", "k", "their-value", "NX", "PX", "60000"}), "OK");
    const auto waits = peer.ask(queued_acquire_of("k", holder_of(1), 20s));
    EXPECT_EQ(waits.what, verdict::held);
    EXPECT_EQ(waits.holders.size(), 1U);
    EXPECT_EQ(waits.position, 1U);
    EXPECT_GT(waits.retry_after, 30s) << "nobody tells of its end, so its expiry is looked at";
    EXPECT_EQ(server.ask({"GET", "k"}), "their-value") << "nothing of ours touched it";
    ASSERT_EQ(server.ask({"DEL", "k"}), "1");
    const auto races = peer.ask(acquire_of("k", holder_of(2)));
    EXPECT_EQ(races.what, verdict::held);
    EXPECT_TRUE(races.holders.empty());
    EXPECT_EQ(peer.ask(queued_acquire_of("k", holder_of(1), 20s)).what, verdict::granted);
    EXPECT_EQ(peer.ask(release_of("k", holder_of(1))).what, verdict::released);
    EXPECT_EQ(server.ask({"KEYS", "{k}:~dibs?*"}), "[]") << "nothing is left of the queue";
}

TEST(RedisFaults, AServerWithTooManyClientsIsBusy) {
    redis_server server;
    redis_peer first{server};
    ASSERT_EQ(first.open(), std::error_code{}) << first.detail;
    ASSERT_EQ(server.ask({"CONFIG", "SET", "maxclients", "1"}), "OK");
    redis_peer late{server};
    EXPECT_EQ(late.open(), errc::store_busy) << late.detail;
    EXPECT_NE(late.detail.find("max number of clients"), std::string::npos) << late.detail;
}

TEST_F(RedisFault, AFullServerTakesNobodyIntoTheQueueAndLetsEverybodyOut) {
    open();
    ASSERT_EQ(peer.ask(acquire_of("k", holder_of(1))).what, verdict::granted);
    ASSERT_EQ(peer.ask(queued_acquire_of("k", holder_of(2), 20s)).position, 1U);
    ASSERT_EQ(peer.ask(queued_acquire_of("k", holder_of(3), 20s)).position, 2U);
    ASSERT_EQ(server.ask({"CONFIG", "SET", "maxmemory", "1"}), "OK");
    const auto refused = peer.ask(queued_acquire_of("k", holder_of(4), 20s));
    EXPECT_EQ(refused.took, effect::no) << refused.detail;
    EXPECT_EQ(refused.error, errc::store_refused);
    EXPECT_EQ(peer.ask(queued_acquire_of("k", holder_of(2), 20s)).position, 1U) << "prolonged";
    EXPECT_EQ(peer.ask(release_of("k", holder_of(2))).what, verdict::not_held);
    EXPECT_EQ(peer.ask(queued_acquire_of("k", holder_of(3), 20s)).position, 1U);
    EXPECT_EQ(peer.ask(renew_of("k", holder_of(1))).what, verdict::renewed);
    EXPECT_EQ(peer.ask(release_of("k", holder_of(1))).what, verdict::released);
    ASSERT_EQ(server.ask({"CONFIG", "SET", "maxmemory", "0"}), "OK");
    EXPECT_EQ(peer.ask(acquire_of("k", holder_of(4))).what, verdict::held);
    EXPECT_EQ(peer.ask(queued_acquire_of("k", holder_of(3), 20s)).what, verdict::granted);
}

TEST_F(RedisFault, PlainLocksAndOursExcludeEachOther) {
    open();
    ASSERT_EQ(server.ask({"SET", "k", "their-value", "NX", "PX", "60000"}), "OK");
    const auto held = peer.ask(acquire_of("k", holder_of(1)));
    ASSERT_EQ(held.what, verdict::held);
    ASSERT_EQ(held.holders.size(), 1U);
    EXPECT_GT(held.retry_after, 30s);
    EXPECT_LE(held.retry_after, 60s + 2ms) << "whole milliseconds, rounded up";
    EXPECT_EQ(peer.ask(renew_of("k", holder_of(1))).what, verdict::not_held);
    EXPECT_EQ(peer.ask(release_of("k", holder_of(1))).what, verdict::not_held);
    EXPECT_EQ(peer.ask(revoke_of("k", 1)).what, verdict::fence_moved);
    EXPECT_EQ(server.ask({"GET", "k"}), "their-value") << "nothing of ours touched it";
    ASSERT_EQ(server.ask({"EVAL", compare_and_delete, "1", "k", "their-value"}), "1");

    ASSERT_EQ(peer.ask(acquire_of("k", holder_of(1))).what, verdict::granted);
    EXPECT_EQ(server.ask({"SET", "k", "their-value", "NX", "PX", "60000"}), "(nil)");
    EXPECT_EQ(server.ask({"EVAL", compare_and_delete, "1", "k", "their-value"}), "0");
    EXPECT_EQ(peer.ask(renew_of("k", holder_of(1))).what, verdict::renewed);
    const auto ttl = std::stol(server.ask({"PTTL", "k"}));
    EXPECT_GT(ttl, 1000);
    EXPECT_LE(ttl, 10'001);
    // A script that deletes what it read is the convention, and works on ours.
    const auto value = server.ask({"GET", "k"});
    EXPECT_EQ(server.ask({"EVAL", compare_and_delete, "1", "k", value}), "1");
    EXPECT_EQ(peer.ask(renew_of("k", holder_of(1))).lost, loss::gone);
    EXPECT_EQ(server.ask({"SET", "k", "their-value", "NX", "PX", "60000"}), "OK");
    EXPECT_EQ(peer.ask(renew_of("k", holder_of(1))).lost, loss::taken);
}

TEST_F(RedisFault, ARecordOfANewerReleaseIsRefused) {
    open();
    ASSERT_EQ(server.ask({"SET", "{k}:~dibs", "dibs2 x y z"}), "OK");
    ASSERT_EQ(server.ask({"SET", "l", "dibs2 x y z"}), "OK");
    for (const auto* key : {"k", "l"}) {
        const auto refused = peer.ask(acquire_of(key, holder_of(1)));
        EXPECT_EQ(refused.took, effect::no);
        EXPECT_EQ(refused.error, errc::newer_format) << refused.detail;
    }
    EXPECT_EQ(server.ask({"GET", "l"}), "dibs2 x y z");
    EXPECT_EQ(error_of_a_look("k"), errc::newer_format);
}

TEST_F(RedisFault, AKeyThatCannotBeReadIsNotShownAsFree) {
    open();
    ASSERT_EQ(server.ask({"RPUSH", "list", "x"}), "1");
    ASSERT_EQ(server.ask({"SET", "{hash}:~dibs", "x"}), "OK");
    for (const auto* key : {"list", "hash"}) {
        EXPECT_EQ(error_of_a_look(key), errc::invalid_key) << key;
    }
    EXPECT_EQ(error_of_a_look("free"), std::error_code{});
    ASSERT_EQ(peer.insist(acquire_of("hash:other", holder_of(1))).what, verdict::granted);
    EXPECT_EQ(error_of_a_look("hash", 100), std::error_code{}) << "a listing leaves it out";
}

}  // namespace dibs::testing
