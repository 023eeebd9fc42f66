// SPDX-License-Identifier: Apache-2.0
// Goal: the servers that tests start are what the tests take them for. Method: do to each what
// tests do to them.
#include "support/postgres_server.hpp"

#include <gtest/gtest.h>

#include <array>
#include <sstream>
#include <string>

namespace dibs::testing {
namespace {

TEST(PostgresServer, KeepsWhatWasCommittedWhenItIsKilled) {
    postgres_server server;
    ASSERT_EQ(server.ask("CREATE TABLE t(n int); INSERT INTO t VALUES(7); SELECT n FROM t"), "7");
    auto open = server.connect();
    EXPECT_EQ(open.ask("BEGIN"), "");
    EXPECT_EQ(open.ask("UPDATE t SET n = 8"), "1");
    server.kill();
    EXPECT_NE(open.ask("COMMIT").find("closed the connection"), std::string::npos);
    ASSERT_TRUE(server.start()) << server.log();
    EXPECT_EQ(server.ask("SELECT n FROM t"), "7");
    server.crash();
    ASSERT_TRUE(server.start()) << server.log();
    EXPECT_EQ(server.ask("SELECT n FROM t"), "7");
    ASSERT_TRUE(server.restart({"max_prepared_transactions=3"})) << server.log();
    EXPECT_EQ(server.ask("SHOW max_prepared_transactions"), "3");
}

TEST(PostgresServer, AnswersNobodyWhileItIsFrozen) {
    postgres_server server;
    auto open = server.connect();
    server.freeze();
    open.send("SELECT 1");
    EXPECT_FALSE(eventually([&] { return open.has_answered(); }, std::chrono::milliseconds{200}));
    server.thaw();
    EXPECT_TRUE(open.answers_soon());
    EXPECT_EQ(open.finish(), "1");
}

TEST(PostgresServer, AStandbyHasTheDataAndTakesOver) {
    postgres_server primary;
    ASSERT_EQ(primary.ask("CREATE TABLE t(n int)"), "");
    postgres_server standby(primary, "standby");
    ASSERT_EQ(primary.ask("INSERT INTO t VALUES(7)"), "1");
    EXPECT_TRUE(eventually([&] { return standby.ask("SELECT n FROM t") == "7"; }));
    EXPECT_TRUE(standby.ask("INSERT INTO t VALUES(8)").starts_with("25006"));
    primary.kill();
    standby.promote();
    EXPECT_EQ(standby.ask("INSERT INTO t VALUES(8)"), "1");
}

TEST(PostgresServer, EndsWithTheProcessThatStartedIt) {
    std::array<int, 2> channel{};
    ASSERT_EQ(::pipe(channel.data()), 0);
    const auto starter = ::fork();
    if (starter == 0) {
        postgres_server server;
        const auto place = server.folder() + " " + server.url() + "\n";
        (void)!::write(channel[1], place.data(), place.size());
        ::raise(SIGKILL);
    }
    ::close(channel[1]);
    std::string told;
    std::array<char, 256> piece{};
    for (ssize_t size = 0; (size = ::read(channel[0], piece.data(), piece.size())) > 0;) {
        told.append(piece.data(), static_cast<std::size_t>(size));
    }
    ::close(channel[0]);
    ASSERT_EQ(::waitpid(starter, nullptr, 0), starter);
    std::string folder;
    std::string url;
    ASSERT_TRUE(std::istringstream{told} >> folder >> url) << told;
    EXPECT_TRUE(eventually([&] { return ::PQping(url.c_str()) == PQPING_NO_RESPONSE; }));
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
}

TEST(PgBouncer, GivesTwoTransactionsOfAClientToTwoSessions) {
    if (!has_pgbouncer()) {
        GTEST_SKIP() << "PgBouncer is not installed";
    }
    postgres_server server;
    pgbouncer pool(server);
    postgres_session first{pool.url()};
    postgres_session second{pool.url()};
    const auto before = first.ask("SELECT pg_backend_pid()");
    // Whoever is in a transaction has that session; the other one gets the next.
    EXPECT_EQ(second.ask("BEGIN"), "");
    EXPECT_EQ(second.ask("SELECT pg_backend_pid()"), before);
    EXPECT_NE(first.ask("SELECT pg_backend_pid()"), before);
    EXPECT_EQ(second.ask("COMMIT"), "");
}

}  // namespace
}  // namespace dibs::testing
