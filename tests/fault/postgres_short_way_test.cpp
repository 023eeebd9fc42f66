// SPDX-License-Identifier: Apache-2.0
// The short ways of the PostgreSQL store (acquire_one.sql, release_one.sql) on a real server: that
// they are taken, that they leave alone what is not simple, and what becomes of them while somebody
// else has the row.

#include "postgres_peer.hpp"
#include "store/postgres/statements.hpp"
#include "store/postgres/steps.hpp"

namespace dibs::testing {

namespace {

namespace pg = store::postgres;

struct PostgresShortWay : ::testing::Test {
    PostgresShortWay() { EXPECT_EQ(peer.open(), std::error_code{}) << peer.detail; }

    /// How the last statement of the peer begins, once the server shows it.
    bool last_was(const std::string& words) const {
        return eventually([&] {
            return server.ask("SELECT bool_or(query LIKE '" + words +
                              "%') FROM pg_stat_activity WHERE application_name LIKE 'dibs %'") ==
                   "t";
        });
    }
    bool last_was_short() const { return last_was("UPDATE "); }
    bool last_was_whole() const { return last_was("SELECT * FROM \"dibs\".lease_execute_1"); }

    /// The statement of these entries, on a session that waits for a row as long as it takes.
    static void send_short(postgres_session& over, const std::vector<core::verb>& what) {
        const pg::caller self{"p", "{}", "", "here", {}, {}};
        std::vector<core::entry> entries;
        std::vector<std::uint32_t> which;
        for (const auto& one : what) {
            which.push_back(static_cast<std::uint32_t>(entries.size()));
            entries.push_back({one, core::instant::max()});
        }
        const auto step = pg::short_step_of(entries, which, self).value();
        const auto seen = step.with.seen();
        ASSERT_EQ(::PQsendQueryParams(over.raw(),
                                      pg::statements{"\"dibs\""}.text(step.which).c_str(),
                                      static_cast<int>(step.with.size()),
                                      nullptr,
                                      seen.values.data(),
                                      seen.lengths.data(),
                                      seen.formats.data(),
                                      0),
                  1);
    }
    bool somebody_waits() {
        return eventually([&] { return server.has_waiting_session(); });
    }
    std::string fence_of(const std::string& key) const {
        return server.ask("SELECT fence FROM dibs.lease WHERE key = '" + key + "'");
    }

    postgres_server server;
    postgres_peer peer{server.url()};
};

}  // namespace

TEST_F(PostgresShortWay, ALoneCallerTakesItForAKeyThatIsKnown) {
    const auto first = peer.ask(acquire_of("k", holder_of(1)));
    ASSERT_EQ(first.what, verdict::granted) << first.detail;
    // A new key is made by the function, and the short way is passed by once after that.
    EXPECT_EQ(peer.ask(release_of("k", holder_of(1))).what, verdict::released);
    EXPECT_EQ(peer.ask(acquire_of("k", holder_of(2))).what, verdict::granted);
    EXPECT_EQ(peer.ask(release_of("k", holder_of(2))).what, verdict::released);
    EXPECT_TRUE(last_was_short());
    const auto again = peer.ask(acquire_of("k", holder_of(3)));
    ASSERT_EQ(again.what, verdict::granted) << again.detail;
    EXPECT_TRUE(last_was_short());
    EXPECT_GT(again.fences.first, first.fences.last);
    EXPECT_EQ(again.expires.time_since_epoch().count(),
              std::stoll(server.ask("SELECT expires FROM dibs.lease WHERE key = 'k'")));
}

TEST_F(PostgresShortWay, WhoAsksForKeysOfOthersStopsTryingItFirst) {
    ASSERT_EQ(peer.ask(acquire_of("k", holder_of(1))).what, verdict::granted);
    for (int at = 0; at < 10; ++at) {
        ASSERT_EQ(peer.ask(acquire_of("k", holder_of(2))).what, verdict::held);
    }
    EXPECT_TRUE(last_was_whole());
    // And takes it again some time after that leads somewhere.
    ASSERT_EQ(peer.ask(release_of("k", holder_of(1))).what, verdict::released);
    for (int at = 0; at < 40; ++at) {
        ASSERT_EQ(peer.ask(acquire_of("k", holder_of(3))).what, verdict::granted);
        ASSERT_EQ(peer.ask(release_of("k", holder_of(3))).what, verdict::released);
    }
    EXPECT_TRUE(last_was_short());
}

TEST_F(PostgresShortWay, IsTooLateWhenItHadToWaitForTheRow) {
    ASSERT_EQ(peer.ask(acquire_of("k", holder_of(1))).what, verdict::granted);
    ASSERT_EQ(peer.ask(release_of("k", holder_of(1))).what, verdict::released);
    const auto fence = fence_of("k");
    auto other = server.connect();
    ASSERT_EQ(other.ask("BEGIN; SELECT 1 FROM dibs.lease WHERE key = 'k' FOR UPDATE"), "1");
    auto asked = acquire_of("k", holder_of(2));
    asked.not_after = core::store_instant{
        core::microseconds{std::stoll(server.ask("SELECT dibs.lease_now_1() + 2000000"))}};
    auto late = server.connect();
    send_short(late, {asked});
    ASSERT_TRUE(somebody_waits());
    const auto now = [&] { return std::stoll(server.ask("SELECT dibs.lease_now_1()")); };
    ASSERT_TRUE(eventually([&] { return now() > asked.not_after->time_since_epoch().count(); }));
    ASSERT_EQ(other.ask("ROLLBACK"), "");
    EXPECT_TRUE(late.finish().starts_with("40001")) << "nobody else has changed the row";
    EXPECT_EQ(fence_of("k"), fence) << "it was undone";
}

TEST_F(PostgresShortWay, FindsNothingWhenTheKeyWentToAnotherMeanwhile) {
    ASSERT_EQ(peer.ask(acquire_of("k", holder_of(1))).what, verdict::granted);
    ASSERT_EQ(peer.ask(release_of("k", holder_of(1))).what, verdict::released);
    auto other = server.connect();
    ASSERT_EQ(other.ask("BEGIN; UPDATE dibs.lease SET holder = '\\x01', granted = 1, expires = "
                        "9000000000000000, fence = fence + 1, fence_first = fence + 1, fence_last "
                        "= fence + 1, attached = true, process = '', who = '' WHERE key = 'k'"),
              "1");
    auto beaten = server.connect();
    send_short(beaten, {acquire_of("k", holder_of(2))});
    ASSERT_TRUE(somebody_waits());
    ASSERT_EQ(other.ask("COMMIT"), "");
    EXPECT_EQ(beaten.finish(), "");
    EXPECT_EQ(server.ask("SELECT holder FROM dibs.lease WHERE key = 'k'"), "\\x01");
}

TEST_F(PostgresShortWay, ABatchTakesItAndPassesOverWhatIsNotSimple) {
    for (const auto* key : {"a", "b", "c"}) {
        ASSERT_EQ(peer.ask(acquire_of(key, holder_of(1))).what, verdict::granted);
        ASSERT_EQ(peer.ask(release_of(key, holder_of(1))).what, verdict::released);
    }
    ASSERT_EQ(peer.ask(acquire_of("taken", holder_of(9))).what, verdict::granted);
    const auto given = peer.wait_for(peer.send({acquire_of("c", holder_of(2)),
                                                acquire_of("a", holder_of(3)),
                                                acquire_of("taken", holder_of(4)),
                                                acquire_of("b", holder_of(5)),
                                                release_of("nothing", holder_of(6))}));
    EXPECT_EQ(given[0].what, verdict::granted);
    EXPECT_EQ(given[1].what, verdict::granted);
    EXPECT_EQ(given[2].what, verdict::held);
    EXPECT_EQ(given[3].what, verdict::granted);
    EXPECT_EQ(given[4].what, verdict::not_held);
    EXPECT_TRUE(last_was_whole()) << "for the two that were passed over";
    const auto all = peer.wait_for(peer.send({renew_of("a", holder_of(3), 60s),
                                              release_of("b", holder_of(5)),
                                              release_of("c", holder_of(2)),
                                              release_of("taken", holder_of(9))}));
    EXPECT_EQ(all[0].what, verdict::renewed);
    EXPECT_EQ(all[0].fences, given[1].fences);
    EXPECT_EQ(all[0].expires.time_since_epoch().count(),
              std::stoll(server.ask("SELECT expires FROM dibs.lease WHERE key = 'a'")));
    EXPECT_EQ(all[1].what, verdict::released);
    EXPECT_EQ(all[2].what, verdict::released);
    EXPECT_EQ(all[3].what, verdict::released);
    EXPECT_TRUE(last_was("WITH done AS"));
    EXPECT_EQ(server.ask("SELECT string_agg(key, ',') FROM dibs.lease WHERE holder IS NOT NULL"),
              "a");
}

TEST_F(PostgresShortWay, ABatchThatHadToWaitForARowIsUndone) {
    for (const auto* key : {"a", "b"}) {
        ASSERT_EQ(peer.ask(acquire_of(key, holder_of(1))).what, verdict::granted);
    }
    auto other = server.connect();
    ASSERT_EQ(other.ask("BEGIN; SELECT 1 FROM dibs.lease WHERE key = 'b' FOR UPDATE"), "1");
    auto late = server.connect();
    send_short(late, {release_of("a", holder_of(1)), release_of("b", holder_of(1))});
    ASSERT_TRUE(somebody_waits());
    const auto now = [&] { return std::stoll(server.ask("SELECT dibs.lease_now_1()")); };
    const auto until = now() + 100'001;
    ASSERT_TRUE(eventually([&] { return now() > until; }));
    ASSERT_EQ(other.ask("ROLLBACK"), "");
    EXPECT_TRUE(late.finish().starts_with("40001"));
    EXPECT_EQ(server.ask("SELECT count(*) FROM dibs.lease WHERE holder IS NOT NULL"), "2");
}

TEST_F(PostgresShortWay, ABatchLeavesAKeyThatWentToAnotherMeanwhile) {
    for (const auto* key : {"a", "b"}) {
        ASSERT_EQ(peer.ask(acquire_of(key, holder_of(1))).what, verdict::granted);
        ASSERT_EQ(peer.ask(release_of(key, holder_of(1))).what, verdict::released);
    }
    auto other = server.connect();
    ASSERT_EQ(other.ask("BEGIN; UPDATE dibs.lease SET holder = '\\x01', granted = 1, expires = "
                        "9000000000000000 WHERE key = 'b'"),
              "1");
    auto beaten = server.connect();
    send_short(beaten, {acquire_of("a", holder_of(2)), acquire_of("b", holder_of(2))});
    ASSERT_TRUE(somebody_waits());
    ASSERT_EQ(other.ask("COMMIT"), "");
    const auto told = beaten.finish();
    // Undone as a whole where the server was slow.
    EXPECT_TRUE(told.starts_with("1|") || told.starts_with("40001")) << told;
    EXPECT_EQ(server.ask("SELECT holder FROM dibs.lease WHERE key = 'b'"), "\\x01");
}

TEST_F(PostgresShortWay, IsNotTakenByOneWhoseRowIsLocked) {
    ASSERT_EQ(peer.ask(acquire_of("k", holder_of(1))).what, verdict::granted);
    auto other = server.connect();
    ASSERT_EQ(other.ask("BEGIN; SELECT 1 FROM dibs.lease WHERE key = 'k' FOR UPDATE"), "1");
    const auto released = peer.send(release_of("k", holder_of(1)));
    ASSERT_TRUE(somebody_waits());
    ASSERT_TRUE(last_was_whole()) << "it is tried again, by the function";
    EXPECT_EQ(peer.ask(acquire_of("another", holder_of(2))).what, verdict::granted);
    ASSERT_EQ(other.ask("COMMIT"), "");
    EXPECT_EQ(peer.wait_for(released).front().what, verdict::released);
}

}  // namespace dibs::testing
