// SPDX-License-Identifier: Apache-2.0
// The PostgreSQL store while its server fails: real servers, killed, stopped, told to end sessions,
// locked, read-only and forbidden. What must hold: an effect is told as yes, no or unknown, and each
// of them is true.

#include "postgres_peer.hpp"

#include <atomic>
#include <thread>

namespace dibs::testing {

namespace {

struct PostgresFault : ::testing::Test {
    void open() { ASSERT_EQ(peer.open(), std::error_code{}) << peer.detail; }

    /// Sessions of dibs that the server knows of.
    std::string sessions(const std::string& what) const {
        return server.ask("SELECT " + what +
                          " FROM pg_stat_activity WHERE application_name LIKE 'dibs %'");
    }
    /// A session that has locked the row of a key.
    postgres_session lock(const std::string& key) const {
        auto other = server.connect();
        EXPECT_EQ(other.ask("BEGIN; SELECT 1 FROM dibs.lease WHERE key = '" + key + "' FOR UPDATE"),
                  "1");
        return other;
    }
    bool somebody_waits() {
        return eventually([&] { return server.has_waiting_session(); });
    }

    postgres_server server;
    postgres_peer peer{server.url()};
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

void expect_true_words(const core::answer& given) {
    EXPECT_TRUE(given.took == effect::yes || given.error) << "no reason";
    if (given.took == effect::no) {
        EXPECT_EQ(given.error, condition::retryable) << given.detail;
    } else if (given.took == effect::unknown) {
        EXPECT_EQ(given.error, condition::outcome_unknown);
    }
}

/// A standby that is never there holds up what waits for it, and that alone.
void wait_for_nobody(const postgres_server& server) {
    EXPECT_EQ(server.ask("ALTER SYSTEM SET synchronous_standby_names = 'nobody'"), "");
    EXPECT_EQ(server.ask("SELECT pg_reload_conf()"), "t");
    EXPECT_TRUE(
        eventually([&] { return server.ask("SHOW synchronous_standby_names") == "nobody"; }));
}

/// A renewal of "k" by the first holder that is held up. Until the server's checkpointer knows of that standby, too, none is.
std::shared_ptr<std::optional<store::answers>> held_up(postgres_peer& peer,
                                                       const postgres_server& server) {
    auto told = peer.send(renew_of("k", holder_of(1)));
    EXPECT_TRUE(eventually([&] {
        if (peer.world.run_until([&] { return told->has_value(); }, 20ms)) {
            told = peer.send(renew_of("k", holder_of(1)));
        }
        return server.ask(
                   "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE "
                   "'dibs %' AND wait_event = 'SyncRep'") == "1";
    }));
    return told;
}

}  // namespace

TEST_F(PostgresFault, AKilledServerLeavesOnlyTrueAnswers) {
    open();
    for (int round = 0; round < 3; ++round) {
        std::vector<postgres_peer::told> sent;
        for (int batch = 0; batch < 20; ++batch) {
            sent.push_back(peer.send(many_acquires(batch * 256)));
        }
        // Some are answered, some are on their way, some were not written.
        ASSERT_TRUE(peer.world.run_until([&] { return sent[0]->has_value(); }));
        server.kill();
        std::vector<std::string> granted;
        std::vector<std::string> refused;
        for (std::size_t batch = 0; batch < sent.size(); ++batch) {
            const auto given = peer.wait_for(sent[batch]);
            for (std::size_t at = 0; at < given.size(); ++at) {
                expect_true_words(given[at]);
                const auto key = "k" + std::to_string(batch * 256 + at);
                if (given[at].took == effect::yes) {
                    EXPECT_EQ(given[at].what, verdict::granted);
                    granted.push_back(key);
                } else if (given[at].took == effect::no) {
                    refused.push_back(key);
                }
            }
        }
        EXPECT_GE(granted.size(), 256U);
        ASSERT_TRUE(server.start());
        const auto there = [&](const std::vector<std::string>& keys) {
            std::string all = "{";
            for (const auto& key : keys) {
                all += (all.size() > 1 ? "," : "") + key;
            }
            return server.ask("SELECT count(*) FROM dibs.lease WHERE key = ANY ('" + all + "}')");
        };
        EXPECT_EQ(there(granted), std::to_string(granted.size()))
            << "a grant that was told is kept";
        EXPECT_EQ(there(refused), "0") << "what surely did not happen did not happen";
        EXPECT_EQ(
            peer.insist(acquire_of("after " + std::to_string(round), holder_of(9'000'000))).what,
            verdict::granted);
        ASSERT_EQ(server.ask("TRUNCATE dibs.lease"), "");
    }
}

TEST_F(PostgresFault, ARestartKeepsTheLease) {
    open();
    auto asked = acquire_of("k", holder_of(1), 60s);
    asked.mark = result_of("under way", 0s, 1h);
    const auto granted = peer.ask(asked);
    ASSERT_EQ(granted.what, verdict::granted) << granted.detail;
    ASSERT_TRUE(server.restart());
    EXPECT_EQ(peer.insist(acquire_of("k", holder_of(2))).what, verdict::held);
    const auto renewed = peer.ask(renew_of("k", holder_of(1)));
    EXPECT_EQ(renewed.what, verdict::renewed);
    EXPECT_EQ(renewed.fences, granted.fences);
    ASSERT_TRUE(renewed.result);
    EXPECT_EQ(renewed.result->value, "under way");
}

TEST_F(PostgresFault, AStepWhoseSessionIsTerminatedIsInDoubt) {
    open();
    ASSERT_EQ(peer.ask(acquire_of("k", holder_of(1))).what, verdict::granted);
    auto other = lock("k");
    const auto told = peer.send(release_of("k", holder_of(1)));
    // It waits for the row for a moment, and is ended just then.
    ASSERT_TRUE(eventually([&] {
        return server.ask(
                   "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE "
                   "application_name LIKE 'dibs %' AND wait_event_type = 'Lock'") != "0";
    }));
    const auto given = peer.wait_for(told).front();
    EXPECT_EQ(given.took, effect::unknown);
    EXPECT_EQ(given.error, condition::outcome_unknown);
    ASSERT_EQ(other.ask("ROLLBACK"), "");
    EXPECT_EQ(peer.insist(release_of("k", holder_of(1))).what, verdict::released);
}

TEST_F(PostgresFault, AnIdleSessionThatIsTerminatedLeavesNoDoubt) {
    open();
    ASSERT_EQ(peer.ask(acquire_of("k", holder_of(1))).what, verdict::granted);
    for (int round = 0; round < 5; ++round) {
        ASSERT_NE(sessions("count(pg_terminate_backend(pid))"), "0");
        ASSERT_TRUE(eventually([&] { return sessions("count(*)") == "0"; }));
        EXPECT_EQ(peer.ask(renew_of("k", holder_of(1))).what, verdict::renewed) << round;
    }
}

TEST_F(PostgresFault, ACancelledStepHasSurelyNotHappened) {
    open();
    ASSERT_EQ(peer.ask(acquire_of("k", holder_of(1))).what, verdict::granted);
    auto other = lock("k");
    const auto told = peer.send(release_of("k", holder_of(1)));
    // A statement may end by its lock_timeout before it is hit.
    ASSERT_TRUE(eventually([&] {
        (void)server.ask(
            "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE "
            "application_name LIKE 'dibs %' AND wait_event_type = 'Lock'");
        return peer.world.run_until([&] { return told->has_value(); }, 1ms);
    }));
    const auto given = peer.wait_for(told).front();
    EXPECT_EQ(given.took, effect::no) << given.detail;
    EXPECT_EQ(given.error, errc::store_busy);
    ASSERT_EQ(other.ask("ROLLBACK"), "");
    EXPECT_EQ(peer.ask(renew_of("k", holder_of(1))).what, verdict::renewed) << "it was undone";
}

TEST_F(PostgresFault, AStuckRowHoldsUpNobodyElse) {
    open();
    ASSERT_EQ(peer.ask(acquire_of("stuck", holder_of(1))).what, verdict::granted);
    auto other = lock("stuck");
    std::vector<core::verb> batch{acquire_of("free", holder_of(2)),
                                  acquire_of("zoo", holder_of(4))};
    batch.emplace_back(release_of("stuck", holder_of(1)));
    const auto stuck = peer.send(std::move(batch), 5s);
    for (int other_key = 0; other_key < 10; ++other_key) {
        const auto key = "other " + std::to_string(other_key);
        EXPECT_EQ(peer.ask(acquire_of(key, holder_of(3)), 1s).what, verdict::granted);
    }
    EXPECT_FALSE(stuck->has_value());
    EXPECT_EQ(server.ask("SELECT count(*) FROM dibs.lease WHERE key IN ('free', 'zoo')"), "2");
    const auto given = peer.wait_for(stuck);
    EXPECT_EQ(given[0].what, verdict::granted);
    EXPECT_EQ(given[1].what, verdict::granted);
    EXPECT_EQ(given[2].took, effect::no);
    EXPECT_EQ(given[2].error, errc::store_busy) << given[2].detail;
    const auto patient = peer.send(release_of("stuck", holder_of(1)));
    ASSERT_TRUE(somebody_waits());
    ASSERT_EQ(other.ask("ROLLBACK"), "");
    EXPECT_EQ(peer.wait_for(patient).front().what, verdict::released);
}

TEST_F(PostgresFault, ANewKeyOfAnUnfinishedTransactionHoldsUpNobodyElse) {
    open();
    auto other = server.connect();
    ASSERT_EQ(other.ask("BEGIN; INSERT INTO dibs.lease (key) VALUES ('new')"), "1");
    std::vector<core::verb> batch{acquire_of("a", holder_of(1)), acquire_of("z", holder_of(2))};
    batch.emplace_back(acquire_of("new", holder_of(3)));
    const auto told = peer.send(std::move(batch));
    // Nothing of this tells the peer, whose batch is answered as a whole.
    ASSERT_TRUE(eventually([&] {
        return server.ask("SELECT count(*) FROM dibs.lease WHERE key IN ('a', 'z')") == "2";
    }));
    ASSERT_EQ(other.ask("COMMIT"), "");
    for (const auto& given : peer.wait_for(told)) {
        EXPECT_EQ(given.what, verdict::granted) << given.detail;
    }
}

TEST_F(PostgresFault, ATableThatIsLockedEndsNobodyWhoComes) {
    open();
    auto other = server.connect();
    ASSERT_EQ(other.ask("BEGIN; LOCK TABLE dibs.lease"), "");
    postgres_peer late{server.url(), 2};
    ASSERT_EQ(late.open(), std::error_code{}) << late.detail;
    const auto given = late.ask(acquire_of("k", holder_of(2)), 300ms);
    EXPECT_EQ(given.took, effect::no);
    EXPECT_EQ(given.error, errc::store_busy) << given.detail;
    auto held_up = late.send(acquire_of("k", holder_of(2)));
    ASSERT_TRUE(somebody_waits());
    ASSERT_EQ(other.ask("COMMIT"), "");
    EXPECT_EQ(late.wait_for(held_up).front().what, verdict::granted);
    ASSERT_EQ(other.ask("BEGIN; LOCK TABLE dibs.lease_format"), "");
    std::thread lets_go{[&] {
        EXPECT_TRUE(somebody_waits());
        EXPECT_EQ(other.ask("COMMIT"), "");
    }};
    postgres_peer later{server.url(), 3};
    EXPECT_EQ(later.open(), std::error_code{}) << later.detail;
    lets_go.join();
    // The short way comes back.
    EXPECT_TRUE(eventually([&] {
        EXPECT_EQ(late.ask(release_of("k", holder_of(2))).what, verdict::released);
        EXPECT_EQ(late.ask(acquire_of("k", holder_of(2))).what, verdict::granted);
        return sessions("count(*) FILTER (WHERE query LIKE 'UPDATE%')") != "0";
    }));
}

TEST_F(PostgresFault, AnEncodingInTheUrlMakesNoOtherKeys) {
    postgres_peer first{server.url() + "?client_encoding=LATIN1"};
    ASSERT_EQ(first.open(), std::error_code{}) << first.detail;
    EXPECT_EQ(first.ask(acquire_of("caf\xc3\xa9", holder_of(1))).what, verdict::granted);
    postgres_peer second{server.url(), 2};
    ASSERT_EQ(second.open(), std::error_code{}) << second.detail;
    EXPECT_EQ(second.ask(acquire_of("caf\xc3\xa9", holder_of(2))).what, verdict::held);
}

TEST_F(PostgresFault, WhatIsAsItShouldBeIsNoErrorInTheServersLog) {
    open();
    const auto before = server.log().size();
    postgres_peer another{server.url(), 2};
    ASSERT_EQ(another.open(), std::error_code{}) << another.detail;
    EXPECT_EQ(another.ask(acquire_of("k", holder_of(2))).what, verdict::granted);
    EXPECT_EQ(server.log().substr(before).find("ERROR"), std::string::npos) << server.log();
}

TEST_F(PostgresFault, BatchesOfTheSameKeysInAnyOrderDoNotStop) {
    open();
    postgres_peer second{server.url(), 2};
    ASSERT_EQ(second.open(), std::error_code{}) << second.detail;
    constexpr std::uint64_t keys = 40;
    for (std::uint64_t round = 0; round < 30; ++round) {
        std::vector<core::verb> forth;
        std::vector<core::verb> back;
        for (std::uint64_t at = 0; at < keys; ++at) {
            // Now and then new ones.
            const auto key = std::to_string(round / 3) + "/" + std::to_string(at);
            forth.emplace_back(acquire_of(key, holder_of(1)));
            back.emplace(back.begin(), acquire_of(key, holder_of(2)));
        }
        const auto first_told = peer.send(std::move(forth));
        const auto second_told = second.send(std::move(back));
        std::size_t granted = 0;
        auto first_given = peer.wait_for(first_told);
        auto second_given = second.wait_for(second_told);
        std::vector<core::verb> release_first;
        std::vector<core::verb> release_second;
        for (std::uint64_t at = 0; at < keys; ++at) {
            const auto key = std::to_string(round / 3) + "/" + std::to_string(at);
            const auto& mine = first_given[at];
            const auto& theirs = second_given[keys - 1 - at];
            EXPECT_EQ(mine.took, effect::yes) << mine.detail;
            EXPECT_EQ(theirs.took, effect::yes) << theirs.detail;
            EXPECT_NE(mine.what == verdict::granted, theirs.what == verdict::granted) << key;
            granted += mine.what == verdict::granted ? 1 : 0;
            release_first.emplace_back(release_of(key, holder_of(1)));
            release_second.emplace_back(release_of(key, holder_of(2)));
        }
        RecordProperty("granted_to_the_first", static_cast<int>(granted));
        peer.wait_for(peer.send(std::move(release_first)));
        second.wait_for(second.send(std::move(release_second)));
    }
    EXPECT_EQ(server.log().find("deadlock detected"), std::string::npos);
}

TEST_F(PostgresFault, AReadOnlyServerIsToldAsSuch) {
    open();
    ASSERT_EQ(peer.ask(acquire_of("k", holder_of(1))).what, verdict::granted);
    ASSERT_TRUE(server.restart({"default_transaction_read_only=on"}));
    core::answer given;
    ASSERT_TRUE(eventually([&] {
        given = peer.ask(renew_of("k", holder_of(1)));
        return given.error == errc::store_refused;
    })) << given.detail;
    EXPECT_EQ(given.took, effect::no);
    EXPECT_NE(given.detail.find("read-only"), std::string::npos) << given.detail;
}

TEST_F(PostgresFault, AStandbyIsRefused) {
    open();
    const postgres_server standby{server, "second"};
    postgres_peer other{standby.url()};
    EXPECT_EQ(other.open(), errc::store_refused);
    EXPECT_NE(other.detail.find("read-only"), std::string::npos) << other.detail;
}

TEST_F(PostgresFault, ACancelledWaitForAStandbyIsInDoubt) {
    open();
    ASSERT_EQ(peer.ask(acquire_of("k", holder_of(1))).what, verdict::granted);
    wait_for_nobody(server);
    const auto told = held_up(peer, server);
    ASSERT_NE(server.ask("SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE "
                         "application_name LIKE 'dibs %' AND wait_event = 'SyncRep'"),
              "0");
    const auto given = peer.wait_for(told).front();
    EXPECT_EQ(given.took, effect::unknown) << "committed here, and perhaps not there";
    EXPECT_EQ(given.error, condition::outcome_unknown);
    EXPECT_NE(given.detail.find("synchronous replication"), std::string::npos) << given.detail;
}

TEST_F(PostgresFault, APromotedStandbyGrantsNothingUntilAllLeasesOfBeforeAreOver) {
    const std::string strict = "?guarantee=strict&max_ttl=2s";
    postgres_peer before{server.url() + strict, 2};
    ASSERT_EQ(before.open(), std::error_code{}) << before.detail;
    EXPECT_EQ(before.opened->caps().ttl_max, 2s);
    const auto first = before.ask(acquire_of("k", holder_of(1), 2s));
    EXPECT_EQ(first.what, verdict::not_ready) << "what was before is not known";
    EXPECT_GT(first.retry_after, 0s);
    EXPECT_LE(first.retry_after, 2s);
    EXPECT_FALSE(first.detail.empty());
    const auto insist_on = [](postgres_peer& through, std::uint64_t holder) {
        core::answer given;
        EXPECT_TRUE(eventually([&] {
            given = through.ask(acquire_of("k" + std::to_string(holder), holder_of(holder), 2s));
            return given.what != verdict::not_ready;
        }));
        return given;
    };
    EXPECT_EQ(insist_on(before, 1).what, verdict::granted);
    ASSERT_TRUE(server.restart());
    EXPECT_EQ(before.insist(acquire_of("k2", holder_of(2), 2s)).what, verdict::granted)
        << "a restart forgets nothing";
    const postgres_server standby{server, "second"};
    // Longer than a client would be let ask, so that a slow host does not end it.
    ASSERT_EQ(before.insist(acquire_of("k3", holder_of(3), 60s)).what, verdict::granted);
    ASSERT_TRUE(eventually(
        [&] { return standby.ask("SELECT count(*) FROM dibs.lease WHERE key = 'k3'") == "1"; }));
    server.stop();
    standby.promote();
    postgres_peer after{standby.url() + strict, 3};
    ASSERT_EQ(after.open(), std::error_code{}) << after.detail;
    const auto begun = after.world.now();
    EXPECT_EQ(after.ask(renew_of("k3", holder_of(3), 60s)).what, verdict::renewed)
        << "who holds a lease goes on";
    auto adoption = renew_of("k3", holder_of(3), 60s);
    adoption.adopt = core::renew::change{holder_of(9)};
    const auto adopted = after.ask(adoption);
    EXPECT_EQ(adopted.what, verdict::not_ready) << "another one may have been forgotten";
    EXPECT_GT(adopted.retry_after, 0s);
    adoption.adopt->holder = holder_of(3);
    EXPECT_EQ(after.ask(adoption).what, verdict::renewed) << "handing over is no grant";
    std::vector<core::verb> batch{acquire_of("k2", holder_of(2), 2s),
                                  acquire_of("new", holder_of(5), 2s)};
    for (const auto& given : after.wait_for(after.send(std::move(batch)))) {
        EXPECT_TRUE(given.what == verdict::not_ready || given.what == verdict::granted);
        EXPECT_EQ(given.took, effect::yes);
    }
    const auto next = insist_on(after, 6);
    EXPECT_EQ(next.what, verdict::granted);
    EXPECT_GE(after.world.now() - begun, 1500ms);
    EXPECT_EQ(standby.ask("SELECT count(*) FROM dibs.lease WHERE key = 'new'"), "0");
}

TEST_F(PostgresFault, WhatIsInTheWayOfAConnectionIsToldApart) {
    const auto fault_of = [](const std::string& url, std::string_view word) {
        postgres_peer one{url};
        const auto error = one.open();
        EXPECT_NE(one.detail.find(word), std::string::npos) << one.detail;
        return error;
    };
    EXPECT_EQ(fault_of(server.url("missing"), "no such database"), errc::store_refused);
    EXPECT_EQ(fault_of(server.url("postgres", "nobody"), "authentication failed"),
              errc::permission_denied);
    const auto wrong = fault_of(
        "postgres://postgres:geheim@127.0.0.1:" + std::to_string(server.port()) + "/missing",
        "no such database");
    EXPECT_EQ(wrong, errc::store_refused);
    server.stop();
    EXPECT_EQ(fault_of(server.url(), "onnection refused"), errc::store_unreachable);
}

TEST_F(PostgresFault, APasswordIsNeverShown) {
    for (const auto* url : {"postgres://me:geheim@127.0.0.1:1/db",
                            "postgres://me@127.0.0.1:1/db?password=geheim",
                            "postgres://me:geheim@127.0.0.1:1/db?nonsense=1",
                            "postgres://me:geheim%zz@127.0.0.1:1/db"}) {
        postgres_peer one{url};
        EXPECT_NE(one.open(), std::error_code{});
        EXPECT_FALSE(one.detail.empty());
        EXPECT_EQ(one.detail.find("geheim"), std::string::npos) << one.detail;
    }
}

TEST(PostgresFaults, TooManyConnectionsAreToldAndRenewalsTakeTheFirst) {
    postgres_server server{{"max_connections=6", "superuser_reserved_connections=0"}};
    postgres_peer peer{server.url()};
    ASSERT_EQ(peer.open(), std::error_code{}) << peer.detail;
    ASSERT_EQ(peer.ask(acquire_of("k", holder_of(1))).what, verdict::granted);
    std::vector<postgres_session> all;
    ASSERT_TRUE(eventually([&] {
        try {
            all.push_back(server.connect());
        } catch (const std::runtime_error&) {
            return true;
        }
        return false;
    }));
    postgres_peer late{server.url(), 2};
    EXPECT_EQ(late.open(), errc::store_busy);
    EXPECT_NE(late.detail.find("too many"), std::string::npos) << late.detail;
    const auto renewed =
        peer.wait_for(peer.send({renew_of("k", holder_of(1))}, 5s, store::lane::renewals)).front();
    EXPECT_EQ(renewed.what, verdict::renewed) << renewed.detail;
}

TEST_F(PostgresFault, TablesOfAnotherFormatAreRefused) {
    open();
    ASSERT_EQ(server.ask("UPDATE dibs.lease_format SET format = 999"), "1");
    postgres_peer other{server.url(), 2};
    EXPECT_EQ(other.open(), errc::newer_format);
    EXPECT_NE(other.detail.find("999"), std::string::npos) << other.detail;
    ASSERT_EQ(server.ask("UPDATE dibs.lease_format SET format = 1"), "1");
    postgres_peer later{server.url(), 3};
    EXPECT_EQ(later.open(), errc::unsupported);
    EXPECT_NE(later.detail.find("drop the schema"), std::string::npos) << later.detail;
}

/// What a crash takes of a release is its end of the grant, and only where that ends soon anyway.
TEST_F(PostgresFault, AReleaseThatACrashUndoesKeepsTheKeyForNoLongerThanTheLease) {
    ASSERT_TRUE(server.restart({"wal_writer_delay=10s"}));
    open();
    for (const auto& [key, ttl] : {std::pair{"long", 600s}, std::pair{"soon", 3s}}) {
        const auto holder = holder_of(1);
        // Those of a lone caller, once by the function and once by the short way.
        ASSERT_EQ(peer.ask(acquire_of(key, holder, ttl)).what, verdict::granted);
        ASSERT_EQ(peer.ask(release_of(key, holder)).what, verdict::released);
        ASSERT_EQ(peer.ask(acquire_of(key, holder, ttl)).what, verdict::granted);
        ASSERT_EQ(peer.ask(release_of(key, holder)).what, verdict::released);
    }
    server.crash();
    ASSERT_TRUE(server.start());
    EXPECT_EQ(server.ask("SELECT holder IS NULL FROM dibs.lease WHERE key = 'long'"), "t");
    EXPECT_EQ(server.ask("SELECT holder IS NULL FROM dibs.lease WHERE key = 'soon'"), "f")
        << "it waited for the disk";
    const auto before = std::stoull(server.ask("SELECT fence FROM dibs.lease WHERE key = 'soon'"));
    core::answer given;
    ASSERT_TRUE(eventually([&] {
        given = peer.insist(acquire_of("soon", holder_of(2)));
        return given.what == verdict::granted;
    }));
    EXPECT_GT(given.fences.first, before);
}

TEST_F(PostgresFault, ADroppedSchemaIsToldAndMadeAnew) {
    open();
    const auto granted = peer.ask(acquire_of("k", holder_of(1)));
    ASSERT_EQ(server.ask("DROP SCHEMA dibs CASCADE"), "");
    const auto given = peer.ask(renew_of("k", holder_of(1)));
    EXPECT_EQ(given.took, effect::no);
    EXPECT_EQ(given.error, errc::store_damaged) << given.detail;
    postgres_peer other{server.url(), 2};
    ASSERT_EQ(other.open(), std::error_code{}) << other.detail;
    const auto next = other.ask(acquire_of("k", holder_of(2)));
    ASSERT_EQ(next.what, verdict::granted);
    EXPECT_GT(next.fences.first, granted.fences.last) << "nothing was kept but the clock";
}

TEST_F(PostgresFault, ManyThatOpenAtOnceMakeTheTablesOnce) {
    std::vector<std::thread> all;
    std::atomic<int> opened{0};
    for (std::uint64_t at = 0; at < 8; ++at) {
        all.emplace_back([&, at] {
            postgres_peer one{server.url(), at + 1};
            const auto error = one.open();
            EXPECT_EQ(error, std::error_code{}) << one.detail;
            opened += error ? 0 : 1;
        });
    }
    for (auto& one : all) {
        one.join();
    }
    EXPECT_EQ(opened, 8);
}

TEST_F(PostgresFault, AWaiterHearsOfAReleaseAlthoughItsSessionWasTerminated) {
    open();
    postgres_peer waiter{server.url(), 2};
    ASSERT_EQ(waiter.open(), std::error_code{}) << waiter.detail;
    ASSERT_EQ(peer.ask(acquire_of("k", holder_of(1))).what, verdict::granted);
    int ready = 0;
    int wakes = 0;
    const auto id = waiter.opened->watch(
        "k", [&](std::error_code error) { ready += error ? 100 : 1; }, [&](auto) { ++wakes; });
    ASSERT_TRUE(waiter.world.run_until([&] { return ready > 0; }));
    ASSERT_EQ(ready, 1);
    ASSERT_NE(sessions("count(pg_terminate_backend(pid))"), "0");
    ASSERT_TRUE(waiter.world.run_until([&] { return wakes > 0; }))
        << "what was said while nobody listened is lost: it must look once more";
    const auto before = wakes;
    ASSERT_EQ(peer.insist(release_of("k", holder_of(1))).what, verdict::released);
    EXPECT_TRUE(waiter.world.run_until([&] { return wakes > before; }));
    waiter.opened->unwatch(id);
}

TEST_F(PostgresFault, AWaiterThatDiedIsPassedOver) {
    open();
    postgres_peer living{server.url(), 2};
    ASSERT_EQ(living.open(), std::error_code{}) << living.detail;
    ASSERT_EQ(peer.ask(acquire_of("k", holder_of(1))).what, verdict::granted);
    // As a process leaves it that was killed: a session that is no more.
    ASSERT_EQ(server.ask("INSERT INTO dibs.lease_waiter (key, process, pid, started) VALUES "
                         "('k', 'dead', 2147483647, now())"),
              "1");
    bool ready = false;
    int wakes = 0;
    const auto id = living.opened->watch(
        "k", [&](std::error_code) { ready = true; }, [&](auto) { ++wakes; });
    ASSERT_TRUE(living.world.run_until([&] { return ready; }));
    ASSERT_EQ(peer.ask(release_of("k", holder_of(1))).what, verdict::released);
    EXPECT_TRUE(living.world.run_until([&] { return wakes > 0; }));
    EXPECT_EQ(server.ask("SELECT count(*) FROM dibs.lease_waiter WHERE process = 'dead'"), "0");
    living.opened->unwatch(id);
}

TEST_F(PostgresFault, WaitersDoNotStallAnIndexThatIsBuiltConcurrently) {
    open();
    postgres_peer waiter{server.url(), 2};
    ASSERT_EQ(waiter.open(), std::error_code{}) << waiter.detail;
    ASSERT_EQ(peer.ask(acquire_of("migration", holder_of(1))).what, verdict::granted);
    bool ready = false;
    const auto id = waiter.opened->watch(
        "migration", [&](std::error_code) { ready = true; }, [](auto) {});
    ASSERT_TRUE(waiter.world.run_until([&] { return ready; }));
    ASSERT_EQ(waiter.ask(queued_acquire_of("migration", holder_of(2), 1h)).what, verdict::held);
    ASSERT_EQ(server.ask("CREATE TABLE t (a int)"), "");
    EXPECT_EQ(server.ask("SET statement_timeout = '20s'; CREATE TABLE u (a int)"), "");
    auto builder = server.connect();
    ASSERT_EQ(builder.ask("SET statement_timeout = '20s'"), "");
    EXPECT_EQ(builder.ask("CREATE INDEX CONCURRENTLY ON t (a)"), "");
    EXPECT_EQ(sessions("count(*) FILTER (WHERE state <> 'idle' OR xact_start IS NOT NULL)"), "0");
    waiter.opened->unwatch(id);
}

TEST_F(PostgresFault, ABackendThatIsKilledTakesAllSessionsAndNoLease) {
    open();
    const auto granted = peer.ask(acquire_of("k", holder_of(1), 60s));
    ASSERT_EQ(granted.what, verdict::granted);
    const auto pid = std::stoi(sessions("min(pid)"));
    ASSERT_EQ(::kill(pid, SIGKILL), 0);
    const auto renewed = peer.insist(renew_of("k", holder_of(1)));
    EXPECT_EQ(renewed.what, verdict::renewed);
    EXPECT_EQ(renewed.fences, granted.fences);
}

TEST_F(PostgresFault, AFrozenServerLeavesDoubtAndNoSilence) {
    open();
    ASSERT_EQ(peer.ask(acquire_of("k", holder_of(1), 60s)).what, verdict::granted);
    peer.settle();
    server.freeze();
    const auto told = peer.send(renew_of("k", holder_of(1)));
    const auto given = peer.wait_for(told).front();
    EXPECT_EQ(given.took, effect::unknown) << given.detail;
    server.thaw();
    EXPECT_EQ(peer.insist(renew_of("k", holder_of(1))).what, verdict::renewed);
}

TEST_F(PostgresFault, APoolerThatComesAndGoesLeavesOnlyTrueAnswers) {
    if (!has_pgbouncer()) {
        GTEST_SKIP() << "no PgBouncer here";
    }
    pgbouncer pooler{server};
    postgres_peer behind{pooler.url(), 2};
    ASSERT_EQ(behind.open(), std::error_code{}) << behind.detail;
    EXPECT_FALSE(behind.opened->caps().wakes) << "noticed";
    const auto granted = behind.ask(acquire_of("k", holder_of(1), 60s));
    ASSERT_EQ(granted.what, verdict::granted) << granted.detail;
    ASSERT_NE(server.ask("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid "
                         "<> pg_backend_pid() AND backend_type = 'client backend'"),
              "0");
    EXPECT_EQ(behind.insist(renew_of("k", holder_of(1))).fences, granted.fences);
    pooler.kill();
    const auto refused = behind.ask(renew_of("k", holder_of(1)), 1s);
    EXPECT_NE(refused.took, effect::yes);
    expect_true_words(refused);
    ASSERT_TRUE(pooler.start());
    EXPECT_EQ(behind.insist(renew_of("k", holder_of(1))).fences, granted.fences);
    // Nothing of ours stays in a session that others get.
    EXPECT_EQ(postgres_session{pooler.url()}.ask("SHOW lock_timeout"), "0");
}

// Nobody hears of it any more; its row stays locked until the standby is back.
TEST_F(PostgresFault, WhoMeetsAStepThatWaitsForAStandbyIsToldWhereToLook) {
    open();
    ASSERT_EQ(peer.ask(acquire_of("k", holder_of(1))).what, verdict::granted);
    postgres_peer another{server.url(), 2};
    ASSERT_EQ(another.open(), std::error_code{}) << another.detail;
    wait_for_nobody(server);
    const auto waits = held_up(peer, server);
    const auto met = another.ask(release_of("k", holder_of(1)), 1s);
    EXPECT_EQ(met.took, effect::no);
    EXPECT_EQ(met.error, errc::store_busy) << met.detail;
    EXPECT_NE(met.detail.find("SyncRep"), std::string::npos) << met.detail;
    EXPECT_FALSE(waits->has_value());
}

TEST(PostgresFaults, WeakerDefaultsOfTheServerDoNotWeakenTheStore) {
    postgres_server server{
        {"synchronous_commit=off", "default_transaction_isolation=serializable"}};
    postgres_peer peer{server.url()};
    ASSERT_EQ(peer.open(), std::error_code{}) << peer.detail;
    EXPECT_EQ(peer.ask(acquire_of("k", holder_of(1))).what, verdict::granted);
    wait_for_nobody(server);
    EXPECT_FALSE(held_up(peer, server)->has_value());
    if (has_pgbouncer()) {
        const pgbouncer pooler{server};
        postgres_peer behind{pooler.url(), 2};
        ASSERT_EQ(behind.open(), std::error_code{}) << behind.detail;
        const auto refused = behind.ask(acquire_of("other", holder_of(2)));
        EXPECT_EQ(refused.took, effect::no);
        EXPECT_EQ(refused.error, errc::store_refused);
        EXPECT_NE(refused.detail.find("read committed"), std::string::npos) << refused.detail;
    }
}

}  // namespace dibs::testing
