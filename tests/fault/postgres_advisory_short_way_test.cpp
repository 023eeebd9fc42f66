// SPDX-License-Identifier: Apache-2.0
// The short ways of leases that are advisory locks (store/postgres/advisory/acquire_one.sql and so
// on) on a real server: that they are taken, that they leave alone what is not simple, and above all
// that no lock stays taken without a grant, whatever fails, and wherever in the statement.

#include "postgres_peer.hpp"
#include "store/postgres/statements.hpp"

namespace dibs::testing {

namespace {

namespace pg = store::postgres;

/// Locks of keys, not the marks of sessions.
constexpr const char* locks_held =
    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1";

std::string by_locks(std::string url) {
    url.insert(url.find(':'), "+advisory");
    return url;
}

/// As docs/stores/postgres.md says.
std::string number_of(const std::string& key) {
    return "('x' || encode(substr(sha256(decode('6469627300', 'hex') || convert_to('" + key +
           "', 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint";
}

struct PostgresAdvisoryShortWay : ::testing::Test {
    PostgresAdvisoryShortWay() {
        EXPECT_EQ(peer.open(), std::error_code{}) << peer.detail;
        EXPECT_EQ(other.open(), std::error_code{}) << other.detail;
    }

    /// The keys have rows, with nothing on them.
    void make(const std::vector<std::string>& keys) {
        for (const auto& key : keys) {
            ASSERT_EQ(peer.ask(acquire_of(key, holder_of(99))).what, verdict::granted);
            ASSERT_EQ(peer.ask(release_of(key, holder_of(99))).what, verdict::released);
        }
    }
    /// How the last statement of one of our sessions begins, once the server shows it.
    bool last_was(const std::string& words) const {
        return eventually([&] {
            return server.ask("SELECT bool_or(query LIKE '" + words +
                              "%') FROM pg_stat_activity WHERE application_name LIKE 'dibs %'") ==
                   "t";
        });
    }
    bool is_whole() const {
        return server.ask(
                   "SELECT bool_or(query LIKE '%session_execute_1%') FROM pg_stat_activity "
                   "WHERE application_name LIKE 'dibs %'") == "t";
    }
    std::string holder_in_row(const std::string& key) const {
        return server.ask("SELECT holder IS NOT NULL FROM dibs.lease WHERE key = '" + key + "'");
    }
    /// A session that keeps locks, by hand.
    postgres_session by_hand() const {
        auto one = server.connect();
        EXPECT_EQ(one.ask("SELECT set_config('dibs.session', 'here:1', false)"), "here:1");
        return one;
    }
    static std::string text(pg::statement which) {
        return pg::statements{"\"dibs\"", true}.text(which);
    }
    /// Sends one of the statements without waiting for what it answers.
    static void begin(postgres_session& over,
                      pg::statement which,
                      const std::vector<const char*>& with) {
        ASSERT_EQ(::PQsendQueryParams(over.raw(),
                                      text(which).c_str(),
                                      static_cast<int>(with.size()),
                                      nullptr,
                                      with.data(),
                                      nullptr,
                                      nullptr,
                                      0),
                  1);
    }
    bool somebody_waits() const {
        return eventually([&] { return server.has_waiting_session(); });
    }

    postgres_server server;
    postgres_peer peer{by_locks(server.url())};
    postgres_peer other{by_locks(server.url()), 2};
};

}  // namespace

TEST_F(PostgresAdvisoryShortWay, ALoneCallerTakesItForAKeyThatIsKnown) {
    make({"k"});
    for (std::uint64_t round = 1; round < 4; ++round) {
        const auto granted = peer.ask(acquire_of("k", holder_of(round)));
        ASSERT_EQ(granted.what, verdict::granted) << granted.detail;
        EXPECT_EQ(server.ask(locks_held), "1");
        EXPECT_EQ(server.ask("SELECT fence_first || '|' || fence_last || '|' || fence FROM "
                             "dibs.lease WHERE key = 'k'"),
                  std::to_string(granted.fences.first) + "|" + std::to_string(granted.fences.last) +
                      "|" + std::to_string(granted.fences.last));
        const auto renewed = peer.ask(renew_of("k", holder_of(round)));
        EXPECT_EQ(renewed.what, verdict::renewed);
        EXPECT_EQ(renewed.fences, granted.fences);
        EXPECT_EQ(peer.ask(release_of("k", holder_of(round))).what, verdict::released);
        EXPECT_EQ(server.ask(locks_held), "0");
        EXPECT_EQ(holder_in_row("k"), "f");
    }
    EXPECT_TRUE(last_was("UPDATE "));
    EXPECT_FALSE(is_whole());
}

TEST_F(PostgresAdvisoryShortWay, ABatchTakesItAlsoForNewKeysAndRenewsWithoutWriting) {
    std::vector<core::verb> first;
    for (std::uint64_t at = 0; at < 100; ++at) {
        first.emplace_back(acquire_of("k" + std::to_string(at), holder_of(at + 1)));
    }
    const auto given = peer.wait_for(peer.send(std::move(first)));
    for (const auto& one : given) {
        ASSERT_EQ(one.what, verdict::granted) << one.detail;
    }
    EXPECT_FALSE(is_whole());
    EXPECT_EQ(server.ask(locks_held), "100");
    const auto written = server.ask("SELECT sum(xmin::text::bigint) FROM dibs.lease");
    std::vector<core::verb> again;
    for (std::uint64_t at = 0; at < 100; ++at) {
        again.emplace_back(renew_of("k" + std::to_string(at), holder_of(at + 1)));
    }
    const auto renewed = peer.wait_for(peer.send(std::move(again)));
    for (std::size_t at = 0; at < renewed.size(); ++at) {
        EXPECT_EQ(renewed[at].what, verdict::renewed);
        EXPECT_EQ(renewed[at].fences, given[at].fences);
    }
    EXPECT_EQ(server.ask("SELECT sum(xmin::text::bigint) FROM dibs.lease"), written);
    EXPECT_FALSE(is_whole());
    std::vector<core::verb> last;
    for (std::uint64_t at = 0; at < 100; ++at) {
        last.emplace_back(release_of("k" + std::to_string(at), holder_of(at + 1)));
    }
    for (const auto& one : peer.wait_for(peer.send(std::move(last)))) {
        EXPECT_EQ(one.what, verdict::released);
    }
    EXPECT_FALSE(is_whole());
    EXPECT_EQ(server.ask(locks_held), "0");
}

TEST_F(PostgresAdvisoryShortWay, WhatIsNotSimpleGoesTheWholeWayBesideWhatIs) {
    make({"a", "b", "blocked", "foreign", "kept", "marked", "queued", "taken", "z"});
    ASSERT_EQ(other.ask(acquire_of("taken", holder_of(50))).what, verdict::granted);
    ASSERT_EQ(other.ask(block_of("blocked", 1h, "repair")).what, verdict::block_set);
    ASSERT_EQ(other.ask(acquire_of("kept", holder_of(51))).what, verdict::granted);
    ASSERT_EQ(other.ask(finish_of("kept", holder_of(51), result_of("result", 0s, 1h))).what,
              verdict::finished);
    ASSERT_EQ(other.ask(acquire_of("queued", holder_of(52))).what, verdict::granted);
    ASSERT_EQ(other.ask(queued_acquire_of("queued", holder_of(53))).what, verdict::held);
    ASSERT_EQ(other.ask(release_of("queued", holder_of(52))).what, verdict::released);
    auto stranger = server.connect();
    ASSERT_EQ(stranger.ask("SELECT pg_try_advisory_lock(" + number_of("foreign") + ")"), "t");
    auto marked = acquire_of("marked", holder_of(6));
    marked.mark = result_of("under way", 0s, 1h);

    const auto given = peer.wait_for(peer.send({acquire_of("z", holder_of(1)),
                                                acquire_of("taken", holder_of(2)),
                                                acquire_of("a", holder_of(3)),
                                                acquire_of("blocked", holder_of(4)),
                                                acquire_of("kept", holder_of(5)),
                                                marked,
                                                acquire_of("queued", holder_of(7)),
                                                acquire_of("foreign", holder_of(8)),
                                                acquire_of("b", holder_of(9)),
                                                release_of("nothing", holder_of(10))}));
    EXPECT_EQ(given[0].what, verdict::granted);
    EXPECT_EQ(given[1].what, verdict::held);
    EXPECT_EQ(given[2].what, verdict::granted);
    EXPECT_EQ(given[3].what, verdict::blocked);
    EXPECT_EQ(given[4].what, verdict::granted);
    ASSERT_TRUE(given[4].result);
    EXPECT_EQ(given[4].result->value, "result");
    EXPECT_EQ(given[5].what, verdict::granted);
    EXPECT_EQ(given[6].what, verdict::held);
    EXPECT_EQ(given[7].what, verdict::held);
    EXPECT_EQ(given[8].what, verdict::granted);
    EXPECT_EQ(given[9].what, verdict::not_held);
    // Five grants; the one of the other peer, and the stranger's.
    EXPECT_EQ(server.ask(locks_held), "7");
    for (const auto& [key, number] : std::vector<std::pair<std::string, std::uint64_t>>{
             {"z", 1}, {"a", 3}, {"kept", 5}, {"marked", 6}, {"b", 9}}) {
        EXPECT_EQ(peer.ask(release_of(key, holder_of(number))).what, verdict::released) << key;
    }
    EXPECT_EQ(server.ask(locks_held), "2");
}

TEST_F(PostgresAdvisoryShortWay, OfOneKeyABatchTakesOneStepAtATime) {
    make({"a", "k", "z"});
    ASSERT_EQ(peer.ask(acquire_of("k", holder_of(1))).what, verdict::granted);
    const auto given = peer.wait_for(peer.send({acquire_of("k", holder_of(2)),
                                                acquire_of("a", holder_of(3)),
                                                release_of("k", holder_of(1)),
                                                acquire_of("k", holder_of(4)),
                                                acquire_of("z", holder_of(5)),
                                                acquire_of("z", holder_of(5))}));
    EXPECT_EQ(given[2].what, verdict::released);
    EXPECT_NE(given[0].what == verdict::granted, given[3].what == verdict::granted);
    EXPECT_EQ(given[4].what, verdict::granted);
    EXPECT_EQ(given[5].what, verdict::granted);
    EXPECT_EQ(given[5].fences, given[4].fences);
    EXPECT_EQ(server.ask(locks_held), "3");
    const auto winner = holder_of(given[0].what == verdict::granted ? 2 : 4);
    for (const auto& [key, holder] : std::vector<std::pair<std::string, core::holder_id>>{
             {"k", winner}, {"a", holder_of(3)}, {"z", holder_of(5)}}) {
        EXPECT_EQ(peer.ask(release_of(key, holder)).what, verdict::released) << key;
    }
    EXPECT_EQ(server.ask(locks_held), "0") << "each was taken once";
}

TEST_F(PostgresAdvisoryShortWay, ACancelledStepLeavesNoLock) {
    make({"a", "slow", "z"});
    ASSERT_EQ(peer.ask(acquire_of("mine", holder_of(9))).what, verdict::granted);
    ASSERT_EQ(
        server.ask("CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM "
                   "pg_sleep(60); RETURN NEW; END'; CREATE TRIGGER slow BEFORE UPDATE ON "
                   "dibs.lease FOR EACH ROW WHEN (NEW.key = 'slow') EXECUTE FUNCTION slow()"),
        "");
    const auto cancel = [&] {
        ASSERT_TRUE(eventually([&] {
            return server.ask(
                       "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE "
                       "wait_event = 'PgSleep'") == "1";
        }));
    };
    const auto batch = peer.send({acquire_of("a", holder_of(1)),
                                  acquire_of("slow", holder_of(2)),
                                  acquire_of("z", holder_of(3))});
    cancel();
    for (const auto& one : peer.wait_for(batch)) {
        EXPECT_EQ(one.took, effect::no);
        EXPECT_EQ(one.error, errc::store_busy);
    }
    peer.settle();
    EXPECT_EQ(server.ask(locks_held), "1");
    const auto lone = peer.send(acquire_of("slow", holder_of(2)));
    cancel();
    EXPECT_EQ(peer.wait_for(lone).front().took, effect::no);
    // The next step, which is of the same key, does not take its lock a second time.
    ASSERT_EQ(server.ask("DROP TRIGGER slow ON dibs.lease"), "");
    EXPECT_EQ(peer.ask(acquire_of("slow", holder_of(4))).what, verdict::granted);
    EXPECT_EQ(peer.ask(release_of("slow", holder_of(4))).what, verdict::released);
    EXPECT_EQ(server.ask(locks_held), "1");
    EXPECT_EQ(peer.ask(renew_of("mine", holder_of(9))).what, verdict::renewed)
        << "the other leases stay";
}

// What fails last of all, when the locks are where they should be already.
TEST_F(PostgresAdvisoryShortWay, AFailedCommitLeavesNoLockAndLosesNone) {
    make({"a", "bad", "z"});
    ASSERT_EQ(peer.ask(acquire_of("mine", holder_of(9))).what, verdict::granted);
    ASSERT_EQ(server.ask("CREATE FUNCTION bad() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE "
                         "EXCEPTION ''bad''; END'; CREATE CONSTRAINT TRIGGER bad AFTER UPDATE ON "
                         "dibs.lease DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.key = "
                         "'bad') EXECUTE FUNCTION bad()"),
              "");
    const auto batch = peer.wait_for(peer.send({acquire_of("a", holder_of(1)),
                                                acquire_of("bad", holder_of(2)),
                                                acquire_of("z", holder_of(3))}));
    EXPECT_EQ(batch[0].what, verdict::granted);
    EXPECT_EQ(batch[1].took, effect::no);
    EXPECT_EQ(batch[2].what, verdict::granted);
    peer.settle();
    EXPECT_EQ(server.ask(locks_held), "3");
    EXPECT_EQ(peer.ask(acquire_of("bad", holder_of(2))).took, effect::no);
    peer.settle();
    EXPECT_EQ(server.ask(locks_held), "3");
    EXPECT_EQ(other.ask(acquire_of("bad", holder_of(2))).took, effect::no) << "nobody holds it";
    EXPECT_EQ(peer.ask(renew_of("mine", holder_of(9))).what, verdict::renewed);
}

TEST_F(PostgresAdvisoryShortWay, ALeaseWhoseLockAFailedReleaseGaveBackIsTold) {
    make({"bad"});
    ASSERT_EQ(peer.ask(acquire_of("bad", holder_of(1))).what, verdict::granted);
    ASSERT_EQ(server.ask("CREATE FUNCTION bad() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE "
                         "EXCEPTION ''bad''; END'; CREATE CONSTRAINT TRIGGER bad AFTER UPDATE ON "
                         "dibs.lease DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.holder "
                         "IS NULL) EXECUTE FUNCTION bad()"),
              "");
    int doubts = 0;
    peer.opened->tell_doubts([&] { ++doubts; });
    const auto released = peer.ask(release_of("bad", holder_of(1)));
    EXPECT_NE(released.what, verdict::released) << released.detail;
    EXPECT_TRUE(peer.world.run_until([&] { return doubts > 0; }))
        << "somebody else may have the key by now";
    EXPECT_EQ(peer.insist(renew_of("bad", holder_of(1))).what, verdict::not_held);
    EXPECT_EQ(server.ask(locks_held), "0");
}

TEST_F(PostgresAdvisoryShortWay, ALockedRowHoldsUpNoOtherAndItsLockIsNotKeptMeanwhile) {
    make({"a", "k", "z"});
    auto somebody = server.connect();
    ASSERT_EQ(somebody.ask("BEGIN; SELECT 1 FROM dibs.lease WHERE key = 'k' FOR UPDATE"), "1");
    const auto batch = peer.send({acquire_of("a", holder_of(1)),
                                  acquire_of("k", holder_of(2)),
                                  acquire_of("z", holder_of(3))});
    EXPECT_TRUE(eventually([&] { return server.ask(locks_held) == "2"; }));
    EXPECT_TRUE(somebody_waits());
    EXPECT_EQ(holder_in_row("a"), "t");
    EXPECT_EQ(holder_in_row("z"), "t");
    EXPECT_EQ(server.ask(locks_held), "2");
    ASSERT_EQ(somebody.ask("ROLLBACK"), "");
    for (const auto& one : peer.wait_for(batch)) {
        EXPECT_EQ(one.what, verdict::granted) << one.detail;
    }
    EXPECT_EQ(server.ask(locks_held), "3");
}

// The server looks at the conditions again when the row that it waited for was written: the lock is
// taken once all the same, and given back when there is no grant.
TEST_F(PostgresAdvisoryShortWay, TheLockOfARowThatTurnsOutToBeAnotherOneIsGivenBack) {
    make({"a", "k"});
    const auto number = server.ask("SELECT " + number_of("k"));
    const auto numbers = "{" + server.ask("SELECT " + number_of("a")) + "," + number + "}";
    auto somebody = server.connect();
    for (const auto way : {pg::statement::acquire_one, pg::statement::step_some}) {
        ASSERT_EQ(somebody.ask("BEGIN; UPDATE dibs.lease SET blocked_until = 9000000000000000 "
                               "WHERE key = 'k'"),
                  "1");
        auto ours = by_hand();
        if (way == pg::statement::acquire_one) {
            begin(ours, way, {"k", "\\x01", "1", "0", nullptr, number.c_str(), "here:1", "{}"});
        } else {
            begin(ours,
                  way,
                  {"{1,1}",
                   "{a,k}",
                   "{\"\\\\x01\",\"\\\\x02\"}",
                   "{1,1}",
                   "{0,0}",
                   "{NULL,NULL}",
                   numbers.c_str(),
                   "here",
                   "here:1",
                   "{}"});
        }
        ASSERT_TRUE(somebody_waits());
        EXPECT_EQ(server.ask("SELECT pg_try_advisory_lock(" + number + ")"), "f");
        ASSERT_EQ(somebody.ask("COMMIT"), "");
        const auto told = ours.finish();
        if (way == pg::statement::acquire_one) {
            EXPECT_NE(told.find("||"), std::string::npos) << told;
            EXPECT_EQ(server.ask(locks_held), "0");
        } else if (!told.starts_with("40001")) {
            // Undone as a whole where the server was slow.
            EXPECT_NE(told.find("|{1}|"), std::string::npos) << told;
            EXPECT_EQ(server.ask(locks_held), "1") << "of a";
        }
        ASSERT_EQ(server.ask("UPDATE dibs.lease SET blocked_until = 0 WHERE key = 'k'"), "1");
    }
}

TEST_F(PostgresAdvisoryShortWay, WhatAFailedStepLeftIsGivenBackOnceAndWithoutAWarning) {
    make({"k"});
    const auto number = server.ask("SELECT " + number_of("k"));
    const auto another = server.ask("SELECT " + number_of("another"));
    auto somebody = server.connect();
    ASSERT_EQ(somebody.ask("BEGIN; SELECT 1 FROM dibs.lease WHERE key = 'k' FOR UPDATE"), "1");
    auto ours = by_hand();
    ASSERT_EQ(ours.ask("SELECT pg_try_advisory_lock(" + another + ")"), "t");
    ASSERT_EQ(ours.ask("SET lock_timeout = '20ms'"), "");
    begin(ours,
          pg::statement::acquire_one,
          {"k", "\\x01", "1", "0", nullptr, number.c_str(), "here:1", "{}"});
    EXPECT_TRUE(ours.finish().starts_with("55P03"));
    EXPECT_EQ(server.ask(locks_held), "2") << "an error does not give it back";
    const auto settle = text(pg::statement::settle_locks);
    const std::vector<std::string> locks{"{" + number + ",5,-7}", "{" + another + "}"};
    EXPECT_EQ(ours.ask(settle, locks), "1|t");
    EXPECT_EQ(ours.ask(settle, locks), "0|t");
    EXPECT_EQ(ours.notices(), "");
    EXPECT_EQ(server.ask(locks_held), "1");
    EXPECT_EQ(ours.ask(settle, {"{}", "{" + number + "," + another + "}"}), "0|f");
}

TEST_F(PostgresAdvisoryShortWay, ASessionThatIsAnotherOneTakesNothing) {
    make({"k"});
    const auto number = server.ask("SELECT " + number_of("k"));
    auto ours = server.connect();
    EXPECT_EQ(ours.ask(text(pg::statement::settle_locks), {"{}", "{}"}), "0|t");
    begin(ours,
          pg::statement::acquire_one,
          {"k", "\\x01", "1", "0", nullptr, number.c_str(), "here:1", "{}"});
    EXPECT_EQ(ours.finish(), "");
    EXPECT_EQ(server.ask(locks_held), "0");
}

}  // namespace dibs::testing
