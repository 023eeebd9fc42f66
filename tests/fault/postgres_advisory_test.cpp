// SPDX-License-Identifier: Apache-2.0
// Leases that are advisory locks of a session, while that session, its server or the pooler between
// them fails, and beside programs that take advisory locks themselves. What must hold: never two who
// hold a key, a lease whose session is gone is told as lost, and no lock stays behind.

#include "postgres_peer.hpp"
#include "support/relay.hpp"

#include <signal.h>

namespace dibs::testing {

namespace {

std::string by_locks(std::string url) {
    url.insert(url.find(':'), "+advisory");
    return url;
}

/// Locks of keys, not the marks of sessions.
constexpr const char* locks_held =
    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1";

struct PostgresAdvisory : ::testing::Test {
    void open() { ASSERT_EQ(peer.open(), std::error_code{}) << peer.detail; }
    static void open(postgres_peer& which) {
        ASSERT_EQ(which.open(), std::error_code{}) << which.detail;
    }
    /// Ends the sessions that have locks of keys; how many.
    std::string terminate() const {
        return server.ask(
            "SELECT count(pg_terminate_backend(pid, 30000)) FROM (SELECT DISTINCT pid FROM "
            "pg_locks WHERE locktype = 'advisory' AND objsubid = 1) AS holding");
    }

    postgres_server server;
    postgres_peer peer{by_locks(server.url())};
    postgres_peer other{by_locks(server.url()), 2};
};

}  // namespace

TEST_F(PostgresAdvisory, AllLeasesOfAClientAreLocksOfOneSession) {
    open();
    std::vector<core::verb> batch;
    for (std::uint64_t at = 0; at < 100; ++at) {
        batch.emplace_back(acquire_of("k" + std::to_string(at), holder_of(at + 1)));
    }
    for (const auto& given : peer.wait_for(peer.send(std::move(batch)))) {
        EXPECT_EQ(given.what, verdict::granted) << given.detail;
    }
    EXPECT_EQ(server.ask(locks_held), "100");
    EXPECT_EQ(server.ask("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE "
                         "'dibs %'"),
              "1");
    EXPECT_EQ(server.ask("SELECT count(DISTINCT pid) FROM pg_locks WHERE locktype = 'advisory'"),
              "1");
    for (std::uint64_t at = 0; at < 100; ++at) {
        EXPECT_EQ(peer.ask(release_of("k" + std::to_string(at), holder_of(at + 1))).what,
                  verdict::released);
    }
    EXPECT_EQ(server.ask(locks_held), "0");
}

// Case 060: PostgreSQL lets a session take its own lock again, and then wants it given back as often.
TEST_F(PostgresAdvisory, AKeyIsOneLockHoweverOftenItIsAskedFor) {
    server.ask("ALTER ROLE postgres SET enable_indexscan = off");
    open();
    open(other);
    ASSERT_EQ(peer.ask(acquire_of("other", holder_of(9))).what, verdict::granted);
    for (int round = 0; round < 3; ++round) {
        const auto granted = peer.ask(acquire_of("k", holder_of(1)));
        ASSERT_EQ(granted.what, verdict::granted) << granted.detail;
        for (int again = 0; again < 5; ++again) {
            const auto retried = peer.ask(acquire_of("k", holder_of(1)));
            EXPECT_EQ(retried.what, verdict::granted);
            EXPECT_EQ(retried.fences, granted.fences);
            EXPECT_EQ(peer.ask(renew_of("k", holder_of(1))).what, verdict::renewed);
            EXPECT_EQ(peer.ask(acquire_of("k", holder_of(2))).what, verdict::held);
            EXPECT_EQ(other.ask(acquire_of("k", holder_of(3))).what, verdict::held);
            EXPECT_EQ(server.ask(locks_held), "2");
        }
        EXPECT_EQ(peer.ask(release_of("k", holder_of(1))).what, verdict::released);
        EXPECT_EQ(server.ask(locks_held), "1");
        EXPECT_EQ(peer.ask(release_of("k", holder_of(1))).what, verdict::not_held);
    }
    EXPECT_EQ(peer.ask(release_of("other", holder_of(9))).what, verdict::released);
    EXPECT_EQ(server.ask(locks_held), "0");
}

TEST_F(PostgresAdvisory, ATerminatedSessionIsALostLease) {
    open();
    open(other);
    for (std::uint64_t round = 1; round <= 5; ++round) {
        const auto granted = peer.ask(acquire_of("k", holder_of(round)));
        ASSERT_EQ(granted.what, verdict::granted) << granted.detail;
        ASSERT_EQ(other.ask(acquire_of("k", holder_of(100))).what, verdict::held);
        ASSERT_EQ(terminate(), "1");
        const auto next = other.insist(acquire_of("k", holder_of(100)));
        EXPECT_EQ(next.what, verdict::granted);
        EXPECT_GT(next.fences.first, granted.fences.last);
        // Neither revived nor silently taken again.
        const auto told = peer.insist(renew_of("k", holder_of(round)));
        EXPECT_EQ(told.what, verdict::not_held);
        EXPECT_EQ(told.lost, loss::taken);
        EXPECT_EQ(peer.ask(release_of("k", holder_of(round))).what, verdict::not_held);
        EXPECT_EQ(other.ask(renew_of("k", holder_of(100))).what, verdict::renewed);
        EXPECT_EQ(other.ask(release_of("k", holder_of(100))).what, verdict::released);
    }
    EXPECT_EQ(server.ask(locks_held), "0");
}

TEST_F(PostgresAdvisory, AKilledServerEndsEveryLeaseAndFencesRise) {
    open();
    const auto granted = peer.ask(acquire_of("k", holder_of(1)));
    ASSERT_EQ(granted.what, verdict::granted);
    auto asked = acquire_of("kept", holder_of(2));
    asked.mark = result_of("under way", 0s, 1h);
    ASSERT_EQ(peer.ask(asked).what, verdict::granted);
    server.kill();
    ASSERT_TRUE(server.start());
    EXPECT_EQ(peer.insist(renew_of("k", holder_of(1))).what, verdict::not_held);
    open(other);
    const auto next = other.insist(acquire_of("k", holder_of(3)));
    EXPECT_EQ(next.what, verdict::granted);
    EXPECT_GT(next.fences.first, granted.fences.last)
        << "whether or not the row of the first grant came back";
    const auto after = other.insist(acquire_of("kept", holder_of(4)));
    ASSERT_TRUE(after.result) << "a mark is durable, unlike a bare grant";
    EXPECT_EQ(after.result->value, "under way");
}

TEST_F(PostgresAdvisory, AKilledServerLeavesOnlyTrueAnswers) {
    open();
    for (int round = 0; round < 3; ++round) {
        std::vector<postgres_peer::told> sent;
        for (int batch = 0; batch < 10; ++batch) {
            std::vector<core::verb> many;
            for (std::uint64_t at = 0; at < 100; ++at) {
                many.emplace_back(acquire_of(
                    std::to_string(round) + "/" + std::to_string(batch) + "/" + std::to_string(at),
                    holder_of(at + 1)));
            }
            sent.push_back(peer.send(std::move(many)));
        }
        ASSERT_TRUE(peer.world.run_until([&] { return sent[0]->has_value(); }));
        server.kill();
        for (const auto& one : sent) {
            for (const auto& given : peer.wait_for(one)) {
                EXPECT_TRUE(given.took == effect::yes || given.error) << "no reason";
                if (given.took == effect::yes) {
                    EXPECT_EQ(given.what, verdict::granted);
                }
            }
        }
        ASSERT_TRUE(server.start());
        // Granted, refused or in doubt: none of them is held by the session that follows.
        const auto first = std::to_string(round) + "/0/0";
        EXPECT_EQ(peer.insist(renew_of(first, holder_of(1))).what, verdict::not_held);
        EXPECT_EQ(server.ask(locks_held), "0");
        EXPECT_EQ(peer.insist(acquire_of(first, holder_of(7))).what, verdict::granted);
        EXPECT_EQ(peer.ask(release_of(first, holder_of(7))).what, verdict::released);
    }
}

// Its answers are lost on the way, and nobody knows whether its steps are carried out.
TEST_F(PostgresAdvisory, AnAnswerThatIsLostIsDoubtAndTheEndOfTheSessionSettlesIt) {
    relay between{std::to_string(server.port())};
    postgres_peer far{
        by_locks("postgres://postgres@127.0.0.1:" + std::to_string(between.port()) + "/postgres"),
        3};
    open(far);
    open(other);
    ASSERT_EQ(far.ask(acquire_of("k", holder_of(1))).what, verdict::granted);
    // So that the first answer is the one that matters.
    ASSERT_EQ(far.ask(acquire_of("in doubt", holder_of(9))).what, verdict::granted);
    ASSERT_EQ(far.ask(release_of("in doubt", holder_of(9))).what, verdict::released);
    far.settle();
    between.replies({.drops = true});
    const auto told = far.send(acquire_of("in doubt", holder_of(2)));
    ASSERT_TRUE(eventually([&] { return server.ask(locks_held) == "2"; }));
    EXPECT_EQ(other.ask(acquire_of("in doubt", holder_of(3))).what, verdict::held);
    EXPECT_EQ(far.wait_for(told).front().took, effect::unknown);
    between.replies({});
    EXPECT_EQ(far.insist(release_of("in doubt", holder_of(2))).what, verdict::not_held);
    EXPECT_EQ(server.ask(locks_held), "0") << "the old session has ended before the new one began";
    EXPECT_EQ(far.insist(renew_of("k", holder_of(1))).what, verdict::not_held);
    EXPECT_EQ(other.ask(acquire_of("k", holder_of(3))).what, verdict::granted);
}

// The server has the old session, which can be asked to end and does not.
TEST_F(PostgresAdvisory, ASessionBeginsAfterTheOneBeforeItIsKnownToHaveEnded) {
    open();
    open(other);
    ASSERT_EQ(peer.ask(acquire_of("k", holder_of(1))).what, verdict::granted);
    peer.settle();
    const auto backend = static_cast<pid_t>(std::stol(
        server.ask("SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1")));
    ASSERT_EQ(::kill(backend, SIGSTOP), 0);
    EXPECT_EQ(peer.ask(release_of("k", holder_of(1))).took, effect::unknown);
    core::answer given;
    EXPECT_TRUE(eventually([&] {
        given = peer.ask(release_of("k", holder_of(1)), 3s);
        return given.detail.find("has not ended") != std::string::npos;
    })) << given.detail;
    EXPECT_EQ(given.took, effect::no);
    EXPECT_EQ(other.ask(acquire_of("k", holder_of(2))).what, verdict::held);
    ASSERT_EQ(::kill(backend, SIGCONT), 0);
    const auto settled = peer.insist(release_of("k", holder_of(1)));
    EXPECT_EQ(settled.what, verdict::not_held);
    EXPECT_EQ(server.ask(locks_held), "0");
    EXPECT_EQ(other.ask(acquire_of("k", holder_of(2))).what, verdict::granted);
}

TEST_F(PostgresAdvisory, AFrozenServerIsDoubtAndNothingStays) {
    open();
    ASSERT_EQ(peer.ask(acquire_of("k", holder_of(1))).what, verdict::granted);
    peer.settle();
    server.freeze();
    const auto given = peer.ask(renew_of("k", holder_of(1)));
    EXPECT_EQ(given.took, effect::unknown);
    server.thaw();
    EXPECT_EQ(peer.insist(renew_of("k", holder_of(1))).what, verdict::not_held);
    EXPECT_EQ(server.ask(locks_held), "0");
    EXPECT_EQ(peer.insist(acquire_of("k", holder_of(2))).what, verdict::granted);
}

TEST_F(PostgresAdvisory, AnErrorOfAStepLeavesNoLock) {
    open();
    ASSERT_EQ(peer.ask(acquire_of("k", holder_of(1))).what, verdict::granted);
    // The row cannot be written, after its lock was taken.
    ASSERT_EQ(
        server.ask("ALTER TABLE dibs.lease ADD CONSTRAINT no CHECK (key <> 'bad' OR holder IS "
                   "NULL)"),
        "");
    std::vector<core::verb> batch{acquire_of("a", holder_of(2)), acquire_of("bad", holder_of(3))};
    batch.emplace_back(acquire_of("z", holder_of(4)));
    const auto given = peer.wait_for(peer.send(std::move(batch)));
    EXPECT_EQ(given[0].what, verdict::granted) << given[0].detail;
    EXPECT_EQ(given[1].took, effect::no);
    EXPECT_EQ(given[2].what, verdict::granted) << given[2].detail;
    EXPECT_EQ(server.ask(locks_held), "3");
    EXPECT_EQ(peer.ask(renew_of("k", holder_of(1))).what, verdict::renewed);
}

TEST_F(PostgresAdvisory, ALockThatWasNotHeldIsALostLease) {
    open();
    ASSERT_EQ(peer.ask(acquire_of("k", holder_of(1))).what, verdict::granted);
    ASSERT_EQ(peer.ask(acquire_of("other", holder_of(2))).what, verdict::granted);
    // The lock is another one by now than the one that was taken: what no honest server does.
    ASSERT_EQ(
        server.ask("CREATE OR REPLACE FUNCTION dibs.lease_now_1() RETURNS bigint LANGUAGE sql AS "
                   "'SELECT (date_part(''epoch'', clock_timestamp()) * 1000000)::bigint FROM "
                   "pg_advisory_unlock_all()'"),
        "");
    ASSERT_TRUE(eventually([&] {
        // A look at the records calls that function in the session.
        peer.settle();
        return server.ask(locks_held) == "0";
    }));
    const auto told = peer.ask(release_of("k", holder_of(1)));
    EXPECT_EQ(told.what, verdict::not_held);
    EXPECT_EQ(told.lost, loss::gone);
    EXPECT_EQ(peer.insist(renew_of("other", holder_of(2))).what, verdict::not_held)
        << "such a session is given up";
}

TEST_F(PostgresAdvisory, ACheatedSessionIsNoticedByTheNextStep) {
    open();
    ASSERT_EQ(peer.ask(acquire_of("k", holder_of(1))).what, verdict::granted);
    // As after DISCARD ALL, or in a session that a pooler has swapped.
    ASSERT_EQ(
        server.ask("CREATE OR REPLACE FUNCTION dibs.lease_now_1() RETURNS bigint LANGUAGE sql "
                   "AS 'SELECT (date_part(''epoch'', clock_timestamp()) * 1000000)::bigint "
                   "FROM set_config(''dibs.session'', '''', false)'"),
        "");
    peer.settle();
    EXPECT_EQ(peer.insist(renew_of("k", holder_of(1))).what, verdict::not_held);
    EXPECT_EQ(server.ask(locks_held), "0");
}

TEST_F(PostgresAdvisory, APoolerThatLendsByTransactionIsRefused) {
    if (!has_pgbouncer()) {
        GTEST_SKIP() << "no PgBouncer";
    }
    for (const auto* settings :
         {"default_pool_size=3", "default_pool_size=1", "server_round_robin=1"}) {
        const pgbouncer pooler{server, {settings}};
        // As many sessions as it may have.
        postgres_session first{pooler.url()};
        postgres_session second{pooler.url()};
        first.ask("SELECT 1");
        second.ask("SELECT 1");
        postgres_peer behind{by_locks(pooler.url()), 4};
        EXPECT_EQ(behind.open(), errc::unsupported) << settings;
        EXPECT_NE(behind.detail.find("pool_mode=session"), std::string::npos) << behind.detail;
        EXPECT_NE(behind.detail.find("postgres://"), std::string::npos) << behind.detail;
        EXPECT_EQ(server.ask("SELECT count(*) FROM pg_namespace WHERE nspname = 'dibs'"), "0");
        EXPECT_NE(first.ask("SHOW statement_timeout"), "10s") << "left in a session of others";
        EXPECT_NE(second.ask("SHOW statement_timeout"), "10s");
    }
}

TEST_F(PostgresAdvisory, APoolerThatLendsSessionsWorksUntilItIsGone) {
    if (!has_pgbouncer()) {
        GTEST_SKIP() << "no PgBouncer";
    }
    pgbouncer pooler{server, {"pool_mode=session", "default_pool_size=20"}};
    postgres_peer behind{by_locks(pooler.url()), 4};
    open(behind);
    open(other);
    ASSERT_EQ(behind.ask(acquire_of("k", holder_of(1))).what, verdict::granted);
    ASSERT_EQ(other.ask(acquire_of("k", holder_of(2))).what, verdict::held);
    // The session goes on to somebody else, without its locks.
    behind.opened.reset();
    EXPECT_EQ(other.insist(acquire_of("k", holder_of(2))).what, verdict::granted);
    open(behind);
    ASSERT_EQ(behind.ask(acquire_of("mine", holder_of(3))).what, verdict::granted);
    pooler.kill();
    ASSERT_TRUE(pooler.start());
    EXPECT_EQ(behind.insist(renew_of("mine", holder_of(3))).what, verdict::not_held);
    EXPECT_EQ(behind.insist(acquire_of("mine", holder_of(4))).what, verdict::granted);
}

TEST_F(PostgresAdvisory, ContendsWithCodeThatHashesNamesItself) {
    const auto url = server.url();
    postgres_peer ours{by_locks(url) + "?hash=hashtext", 5};
    open(ours);
    auto theirs = server.connect();
    ASSERT_EQ(theirs.ask("SELECT pg_try_advisory_lock(hashtext('invoice:1'))"), "t");
    const auto held = ours.ask(acquire_of("invoice:1", holder_of(1)));
    EXPECT_EQ(held.what, verdict::held);
    ASSERT_EQ(held.holders.size(), 1U) << "somebody that is not known here";
    EXPECT_EQ(held.holders.front().fences.last, 0U);
    EXPECT_LE(held.retry_after, 1s) << "which tells nobody when it lets go";
    ASSERT_EQ(theirs.ask("SELECT pg_advisory_unlock(hashtext('invoice:1'))"), "t");
    ASSERT_EQ(ours.ask(acquire_of("invoice:1", holder_of(1))).what, verdict::granted);
    EXPECT_EQ(theirs.ask("SELECT pg_try_advisory_lock(hashtext('invoice:1'))"), "f");
    EXPECT_EQ(ours.ask(release_of("invoice:1", holder_of(1))).what, verdict::released);
    EXPECT_EQ(theirs.ask("SELECT pg_try_advisory_lock(hashtext('invoice:1'))"), "t");
}

TEST_F(PostgresAdvisory, TwoNamesOfOneNumberExcludeEachOtherAlsoWithinAProcess) {
    // Both are 32-bit numbers of the server.
    ASSERT_EQ(server.ask("SELECT hashtext('invoice:76052') = hashtext('invoice:127095')"), "t");
    const auto url = by_locks(server.url()) + "?hash=hashtext";
    postgres_peer ours{url, 5};
    postgres_peer theirs{url, 6};
    open(ours);
    open(theirs);
    const auto first = ours.ask(acquire_of("invoice:76052", holder_of(1)));
    ASSERT_EQ(first.what, verdict::granted);
    EXPECT_EQ(ours.ask(acquire_of("invoice:127095", holder_of(2))).what, verdict::held);
    EXPECT_EQ(theirs.ask(acquire_of("invoice:127095", holder_of(3))).what, verdict::held);
    EXPECT_EQ(ours.ask(renew_of("invoice:76052", holder_of(1))).what, verdict::renewed);
    ASSERT_EQ(ours.ask(release_of("invoice:76052", holder_of(1))).what, verdict::released);
    std::vector<core::verb> both{acquire_of("invoice:127095", holder_of(4)),
                                 acquire_of("invoice:76052", holder_of(5))};
    const auto given = ours.wait_for(ours.send(std::move(both)));
    EXPECT_NE(given[0].what == verdict::granted, given[1].what == verdict::granted)
        << "one of them, in one batch";
    EXPECT_EQ(server.ask(locks_held), "1");
}

TEST_F(PostgresAdvisory, ATransactionMayLockTheSameName) {
    open();
    // The number that docs and `dibs guard` name: of "dibs", a zero byte and the name.
    const std::string number =
        "('x' || encode(substr(sha256(decode('6469627300', 'hex') || convert_to('k', 'UTF8')), 1, "
        "8), 'hex'))::bit(64)::bigint";
    auto transaction = server.connect();
    ASSERT_EQ(transaction.ask("BEGIN; SELECT pg_try_advisory_xact_lock(" + number + ")"), "t");
    EXPECT_EQ(peer.ask(acquire_of("k", holder_of(1))).what, verdict::held);
    ASSERT_EQ(transaction.ask("COMMIT"), "");
    ASSERT_EQ(peer.ask(acquire_of("k", holder_of(1))).what, verdict::granted);
    EXPECT_EQ(transaction.ask("BEGIN; SELECT pg_try_advisory_xact_lock(" + number + ")"), "f");
}

TEST_F(PostgresAdvisory, ASchemaIsUsedInOneWay) {
    open();
    postgres_peer rows{server.url(), 6};
    EXPECT_EQ(rows.open(), errc::unsupported);
    EXPECT_NE(rows.detail.find("schema"), std::string::npos) << rows.detail;
    postgres_peer hashed{by_locks(server.url()) + "?hash=hashtext", 7};
    EXPECT_EQ(hashed.open(), errc::unsupported);
    EXPECT_NE(hashed.detail.find("hash=sha256"), std::string::npos) << hashed.detail;
    postgres_peer elsewhere{server.url() + "?schema=rows", 8};
    open(elsewhere);
    postgres_peer locks{by_locks(server.url()) + "?schema=rows", 9};
    EXPECT_EQ(locks.open(), errc::unsupported);
    // Fences rise from one way of use to the other.
    const auto before = elsewhere.ask(acquire_of("k", holder_of(1)));
    const auto after = peer.ask(acquire_of("k", holder_of(1)));
    EXPECT_GT(after.fences.first, before.fences.last);
}

TEST_F(PostgresAdvisory, WaitingParksNothingInTheServer) {
    open();
    open(other);
    ASSERT_EQ(server.ask("CREATE TABLE big (n integer); INSERT INTO big SELECT generate_series(1, "
                         "1000)"),
              "1000");
    ASSERT_EQ(peer.ask(acquire_of("migration", holder_of(1))).what, verdict::granted);
    for (std::uint64_t at = 2; at < 7; ++at) {
        EXPECT_EQ(other.ask(queued_acquire_of("migration", holder_of(at))).what, verdict::held);
    }
    EXPECT_EQ(server.ask("CREATE INDEX CONCURRENTLY ON big (n)"), "");
    EXPECT_EQ(server.log().find("deadlock"), std::string::npos);
    EXPECT_FALSE(server.has_waiting_session());
}

TEST_F(PostgresAdvisory, TheEndOfASessionAndARevocationAreToldAtOnce) {
    open();
    open(other);
    int doubts = 0;
    peer.opened->tell_doubts([&] { ++doubts; });
    const auto granted = peer.ask(acquire_of("k", holder_of(1)));
    ASSERT_EQ(granted.what, verdict::granted);
    ASSERT_EQ(peer.ask(acquire_of("second", holder_of(2))).what, verdict::granted);
    EXPECT_EQ(doubts, 0);
    // Without a renewal of the holder.
    ASSERT_EQ(other.ask(revoke_of("k", granted.fences.first)).what, verdict::revoked);
    EXPECT_TRUE(peer.world.run_until([&] { return doubts == 1; }));
    EXPECT_EQ(server.ask(locks_held), "1");
    EXPECT_EQ(peer.ask(renew_of("k", holder_of(1))).lost, loss::revoked);
    ASSERT_EQ(terminate(), "1");
    EXPECT_TRUE(peer.world.run_until([&] { return doubts == 2; }));
    EXPECT_EQ(peer.insist(renew_of("second", holder_of(2))).what, verdict::not_held);
}

TEST_F(PostgresAdvisory, OneProcessLeavesRoomInTheTableOfLocks) {
    ASSERT_TRUE(server.restart({"max_locks_per_transaction=10", "max_connections=20"}));
    open();
    constexpr std::size_t room = 10 * 20 / 4;
    std::vector<core::verb> batch;
    for (std::uint64_t at = 0; at < room + 5; ++at) {
        batch.emplace_back(acquire_of(std::to_string(1000 + at), holder_of(1)));
    }
    const auto given = peer.wait_for(peer.send(std::move(batch)));
    for (std::size_t at = 0; at < given.size(); ++at) {
        if (at < room) {
            EXPECT_EQ(given[at].what, verdict::granted) << given[at].detail;
        } else {
            EXPECT_EQ(given[at].took, effect::no);
            EXPECT_EQ(given[at].error, errc::store_refused);
            EXPECT_NE(given[at].detail.find("max_locks_per_transaction"), std::string::npos);
        }
    }
    EXPECT_EQ(peer.ask(release_of("1000", holder_of(1))).what, verdict::released);
    EXPECT_EQ(peer.ask(acquire_of("again", holder_of(2))).what, verdict::granted);
}

// By others.
TEST_F(PostgresAdvisory, AFullTableOfLocksIsToldAndLeavesNone) {
    ASSERT_TRUE(server.restart({"max_locks_per_transaction=10", "max_connections=20"}));
    open();
    ASSERT_EQ(peer.ask(acquire_of("k", holder_of(1))).what, verdict::granted);
    auto greedy = server.connect();
    const auto full = greedy.ask(
        "SELECT count(pg_try_advisory_lock(1, n)) FROM generate_series(1, 1000000) AS n");
    ASSERT_TRUE(full.starts_with("53200")) << full;
    std::vector<core::verb> batch{acquire_of("a", holder_of(2)), acquire_of("b", holder_of(3))};
    for (const auto& given : peer.wait_for(peer.send(std::move(batch)))) {
        EXPECT_EQ(given.took, effect::no);
        EXPECT_NE(given.detail.find("max_locks_per_transaction"), std::string::npos)
            << given.detail;
    }
    // All that it took, which an error does not give back.
    ASSERT_EQ(greedy.ask("SELECT pg_advisory_unlock_all()"), "");
    EXPECT_EQ(server.ask(locks_held), "1");
    EXPECT_EQ(peer.ask(release_of("k", holder_of(1))).what, verdict::released);
}

}  // namespace dibs::testing
