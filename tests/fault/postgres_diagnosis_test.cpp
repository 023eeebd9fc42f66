// SPDX-License-Identifier: Apache-2.0
// What `dibs doctor` finds on a real server.

#include "postgres_peer.hpp"
#include "store/postgres/diagnosis.hpp"

#include <optional>
#include <string>

namespace dibs::testing {

namespace {

using grade = store::finding::grade;

std::optional<store::finding> about(postgres_peer& peer, const std::string& subject) {
    if (const auto error = peer.open()) {
        ADD_FAILURE() << error.message() << ": " << peer.detail;
        return std::nullopt;
    }
    for (auto& one : peer.opened->diagnose()) {
        if (one.subject == subject) {
            return one;
        }
    }
    return std::nullopt;
}

grade grade_of(const std::string& url, const std::string& subject) {
    postgres_peer peer{url};
    const auto found = about(peer, subject);
    EXPECT_TRUE(found) << "nothing about " << subject;
    EXPECT_TRUE(!found || found->state == grade::ok || !found->advice.empty()) << found->what;
    return found ? found->state : grade::problem;
}

/// Of a database without the tables. Empty: nothing is said of it.
std::optional<grade> surveyed(const std::string& url, const std::string& subject) {
    pumped_environment world{1};
    std::string fault;
    const auto where = store::postgres::parse_address(url, fault);
    EXPECT_TRUE(where) << fault;
    for (const auto& one : store::postgres::survey(world.view(), *where)) {
        if (one.subject == subject) {
            return one.state;
        }
    }
    return std::nullopt;
}

std::string advisory(std::string url) {
    return url.insert(url.find(':'), "+advisory");
}

}  // namespace

TEST(PostgresDiagnosis, ASoundServerIsFoundSound) {
    const postgres_server server{{"fsync=on"}};
    postgres_peer peer{server.url()};
    ASSERT_EQ(peer.open(), std::error_code{}) << peer.detail;
    const auto found = peer.opened->diagnose();
    EXPECT_GE(found.size(), 6U);
    for (const auto& one : found) {
        EXPECT_EQ(one.state, grade::ok) << one.subject << ": " << one.what;
    }
}

TEST(PostgresDiagnosis, FindsWhatACrashMayLose) {
    const postgres_server careless{{"fsync=off"}};
    EXPECT_EQ(grade_of(careless.url(), "durability"), grade::problem);
    const postgres_server torn{{"fsync=on", "full_page_writes=off"}};
    EXPECT_EQ(grade_of(torn.url(), "durability"), grade::warning);
}

TEST(PostgresDiagnosis, FindsAStandbyThatNobodyWaitsFor) {
    postgres_server server;
    ASSERT_EQ(grade_of(server.url(), "rights"), grade::ok);
    const postgres_server standby{server, "second"};
    ASSERT_TRUE(
        eventually([&] { return server.ask("SELECT count(*) FROM pg_stat_replication") == "1"; }));
    EXPECT_EQ(grade_of(server.url(), "standbys"), grade::warning);
    ASSERT_EQ(server.ask("ALTER SYSTEM SET synchronous_standby_names = 'second'"), "");
    ASSERT_EQ(server.ask("SELECT pg_reload_conf()"), "t");
    ASSERT_TRUE(
        eventually([&] { return server.ask("SHOW synchronous_standby_names") == "second"; }));
    EXPECT_EQ(grade_of(server.url(), "standbys"), grade::ok);
}

TEST(PostgresDiagnosis, FindsThatCommitsWaitForAStandbyThatIsGone) {
    postgres_server server;
    ASSERT_EQ(grade_of(server.url(), "rights"), grade::ok);
    ASSERT_EQ(server.ask("ALTER SYSTEM SET synchronous_standby_names = 'another'"), "");
    ASSERT_EQ(server.ask("SELECT pg_reload_conf()"), "t");
    ASSERT_TRUE(
        eventually([&] { return server.ask("SHOW synchronous_standby_names") == "another"; }));
    EXPECT_EQ(grade_of(server.url(), "standbys"), grade::problem);
    // One is connected, and not the one that is waited for: that shows by who waits.
    const postgres_server standby{server, "second"};
    ASSERT_TRUE(
        eventually([&] { return server.ask("SELECT count(*) FROM pg_stat_replication") == "1"; }));
    EXPECT_EQ(grade_of(server.url(), "standbys"), grade::ok);
    auto waits = server.connect();
    waits.send("CREATE TABLE anything()");
    EXPECT_TRUE(eventually([&] { return grade_of(server.url(), "standbys") == grade::problem; }));
}

TEST(PostgresDiagnosis, FindsAPooler) {
    if (!has_pgbouncer()) {
        GTEST_SKIP() << "no PgBouncer here";
    }
    const postgres_server server;
    const pgbouncer pooler{server};
    EXPECT_EQ(grade_of(server.url(), "connection"), grade::ok);
    EXPECT_EQ(grade_of(pooler.url(), "connection"), grade::warning);
    const postgres_server strict{{"default_transaction_isolation=serializable"}};
    const pgbouncer before_it{strict};
    EXPECT_EQ(grade_of(before_it.url(), "isolation"), grade::problem);
}

TEST(PostgresDiagnosis, FindsMissingRights) {
    const postgres_server server;
    server.ask("CREATE USER app");
    ASSERT_EQ(grade_of(server.url(), "rights"), grade::ok);
    ASSERT_EQ(server.ask("GRANT USAGE ON SCHEMA dibs TO app; GRANT SELECT ON ALL TABLES IN SCHEMA "
                         "dibs TO app; GRANT INSERT, UPDATE ON dibs.lease TO app"),
              "");
    postgres_peer app{server.url("postgres", "app")};
    const auto found = about(app, "rights");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->state, grade::problem);
    EXPECT_NE(found->what.find("DELETE on lease,"), std::string::npos) << found->what;
    EXPECT_EQ(found->what.find("INSERT on lease,"), std::string::npos) << found->what;
    ASSERT_EQ(server.ask("GRANT ALL ON ALL TABLES IN SCHEMA dibs TO app"), "");
    EXPECT_EQ(grade_of(server.url("postgres", "app"), "rights"), grade::ok);
    ASSERT_EQ(server.ask("ALTER TABLE dibs.lease_grant ENABLE ROW LEVEL SECURITY"), "");
    postgres_peer blind{server.url("postgres", "app")};
    const auto hidden = about(blind, "rights");
    ASSERT_TRUE(hidden);
    EXPECT_EQ(hidden->state, grade::problem);
    EXPECT_EQ(hidden->what, "missing: all rows of lease_grant (row level security)");
    EXPECT_EQ(grade_of(server.url(), "rights"), grade::ok);
    ASSERT_EQ(server.ask("ALTER TABLE dibs.lease_grant DISABLE ROW LEVEL SECURITY"), "");
    ASSERT_EQ(server.ask("REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA dibs FROM PUBLIC"), "");
    postgres_peer powerless{server.url("postgres", "app")};
    const auto more = about(powerless, "rights");
    ASSERT_TRUE(more);
    EXPECT_EQ(more->state, grade::problem);
    EXPECT_NE(more->what.find("EXECUTE on dibs.lease_execute_"), std::string::npos) << more->what;
}

TEST(PostgresDiagnosis, FindsTheRightsThatAdvisoryLocksNeed) {
    const postgres_server server;
    server.ask("CREATE USER app");
    ASSERT_EQ(grade_of(advisory(server.url()), "rights"), grade::ok);
    ASSERT_EQ(
        server.ask("GRANT USAGE ON SCHEMA dibs TO app; GRANT ALL ON ALL TABLES IN SCHEMA dibs "
                   "TO app; REVOKE EXECUTE ON FUNCTION pg_terminate_backend(int, bigint) "
                   "FROM PUBLIC"),
        "");
    postgres_peer app{advisory(server.url("postgres", "app"))};
    const auto found = about(app, "rights");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->state, grade::problem);
    EXPECT_EQ(found->what, "missing: EXECUTE on pg_terminate_backend(integer,bigint)");
}

TEST(PostgresDiagnosis, FindsATableOfLocksThatIsNearlyFull) {
    const postgres_server server{{"max_connections=8", "max_locks_per_transaction=10"}};
    EXPECT_EQ(grade_of(server.url(), "locks"), grade::ok);
    auto holder = server.connect();
    ASSERT_EQ(holder.ask("SELECT count(pg_advisory_lock(i)) FROM generate_series(1, 70) i"), "70");
    postgres_peer peer{server.url()};
    const auto found = about(peer, "locks");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->state, grade::warning);
    EXPECT_NE(found->what.find(" of 80 places"), std::string::npos) << found->what;
    EXPECT_NE(found->what.find("70 of them by advisory"), std::string::npos) << found->what;
}

TEST(PostgresDiagnosis, WithoutTablesItTellsWhoMayMakeThem) {
    const postgres_server server{{"fsync=off"}};
    server.ask("CREATE USER app; CREATE USER maker");
    // By everybody's own way: none, CREATE on the database, a schema of one's own.
    EXPECT_EQ(surveyed(server.url("postgres", "app"), "rights"), grade::problem);
    EXPECT_EQ(surveyed(server.url(), "rights"), grade::ok);
    ASSERT_EQ(server.ask("CREATE SCHEMA dibs AUTHORIZATION maker"), "");
    EXPECT_EQ(surveyed(server.url("postgres", "maker"), "rights"), grade::ok);
    EXPECT_EQ(surveyed(server.url("postgres", "app"), "rights"), grade::problem);
    EXPECT_EQ(surveyed(server.url("postgres", "app"), "durability"), grade::problem);
    EXPECT_EQ(surveyed(server.url("postgres", "app"), "connection"), grade::ok);
    EXPECT_EQ(server.ask("SELECT count(*) FROM pg_class WHERE relnamespace = 'dibs'::regnamespace"),
              "0");
    postgres_peer maker{server.url("postgres", "maker")};
    ASSERT_EQ(maker.open(), std::error_code{}) << maker.detail;
    EXPECT_EQ(surveyed(server.url("postgres", "maker"), "rights"), std::nullopt);
}

TEST(PostgresDiagnosis, WithoutTablesAPoolerIsFoundToo) {
    if (!has_pgbouncer()) {
        GTEST_SKIP() << "no PgBouncer here";
    }
    const postgres_server server;
    const pgbouncer by_transaction{server};
    const pgbouncer by_session{server, {"pool_mode=session"}};
    EXPECT_EQ(surveyed(by_transaction.url(), "connection"), grade::warning);
    EXPECT_EQ(surveyed(advisory(by_transaction.url()), "connection"), grade::problem);
    EXPECT_EQ(surveyed(advisory(by_session.url()), "connection"), grade::ok);
}

TEST(PostgresDiagnosis, FindsAClockThatIsElsewhere) {
    const temporary_folder folder;
    const server_clock clock{
        (folder.path() / "clock").string(), 3'600'000'000, server_clock::runs::by_itself};
    give_to_plain_user(folder.path());
    const postgres_server server{{}, &clock};
    postgres_peer peer{server.url()};
    const auto found = about(peer, "clock");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->state, grade::warning);
    EXPECT_NE(found->what.find("ahead"), std::string::npos) << found->what;
}

TEST(PostgresDiagnosis, FindsACrowd) {
    const postgres_server server{{"max_connections=4", "superuser_reserved_connections=0"}};
    auto first = server.connect();
    const auto second = server.connect();
    const auto third = server.connect();
    // Whoever looked whether the server is up may still have its place for a moment.
    ASSERT_TRUE(eventually([&] {
        return first.ask(
                   "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client "
                   "backend'") == "3";
    }));
    EXPECT_EQ(grade_of(server.url(), "connections"), grade::warning);
}

}  // namespace dibs::testing
