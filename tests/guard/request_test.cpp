// SPDX-License-Identifier: Apache-2.0
// Goal: a request is done once, however often it comes, and whatever dies in between. Method:
// sessions that interleave, on a real server.
#include "guarded_server.hpp"

#include <string>

namespace dibs::testing {
namespace {

class Requests : public ::testing::Test {
  protected:
    Requests() { EXPECT_EQ(server_.ask("CREATE TABLE paid(n int)"), ""); }

    static std::string begin(const std::string& payload, const std::string& more = "") {
        return "SELECT outcome, result FROM dibs.begin_request('r1', '" + payload + "'" + more +
               ")";
    }
    static constexpr const char* finish = "SELECT dibs.finish_request('r1', 'answer')";

    guarded_server server_;
};

TEST_F(Requests, TheFirstAnswerIsReplayed) {
    auto first = server_.connect();
    first.ask("BEGIN");
    EXPECT_EQ(first.ask(begin("pay 5")), "run|");
    EXPECT_EQ(first.ask("INSERT INTO paid VALUES(5)"), "1");
    EXPECT_EQ(first.ask(finish), "");
    first.ask("COMMIT");
    EXPECT_EQ(server_.ask(begin("pay 5")), "replay|answer");
    EXPECT_TRUE(is_error(server_.ask(begin("pay 6")), "ZD005"));
    EXPECT_EQ(server_.ask("SELECT count(*) FROM paid"), "1");
}

TEST_F(Requests, AnotherPayloadIsRefusedWithinItsTransactionToo) {
    auto session = server_.connect();
    session.ask("BEGIN");
    EXPECT_EQ(session.ask(begin("pay 5")), "run|");
    EXPECT_EQ(session.ask(begin("pay 5")), "run|");
    session.ask("SAVEPOINT s");
    EXPECT_TRUE(is_error(session.ask(begin("pay 6")), "ZD005"));
    session.ask("ROLLBACK TO s");
    EXPECT_EQ(session.ask(finish), "");
    session.ask("COMMIT");
    EXPECT_EQ(server_.ask(begin("pay 5")), "replay|answer");
}

TEST_F(Requests, OneThatIsUnderWayIsToldApart) {
    auto first = server_.connect();
    auto second = server_.connect();
    first.ask("BEGIN");
    EXPECT_EQ(first.ask(begin("pay 5")), "run|");
    EXPECT_EQ(second.ask(begin("pay 5")), "in_flight|");
    EXPECT_EQ(second.ask(begin("pay 5", ", '20 ms'")), "in_flight|");
    second.send(begin("pay 5", ", '1 minute'"));
    ASSERT_TRUE(eventually([&] { return server_.has_waiting_session(); }));
    first.ask(finish);
    first.ask("COMMIT");
    EXPECT_EQ(second.finish(), "replay|answer");
}

// Case 185: a crash leaves nothing behind.
TEST_F(Requests, OneWhoseWorkerOrServerDiedIsRunAnew) {
    auto first = server_.connect();
    first.ask("BEGIN");
    EXPECT_EQ(first.ask(begin("pay 5")), "run|");
    EXPECT_EQ(first.ask("INSERT INTO paid VALUES(5)"), "1");
    server_.ask("SELECT pg_terminate_backend(" + std::to_string(first.server_process()) + ")");
    auto second = server_.connect();
    second.ask("BEGIN");
    EXPECT_TRUE(eventually([&] { return second.ask(begin("pay 5")) == "run|"; }));
    EXPECT_EQ(second.ask("INSERT INTO paid VALUES(5)"), "1");
    EXPECT_EQ(second.ask(finish), "");
    server_.kill();
    ASSERT_TRUE(server_.start()) << server_.log();
    EXPECT_EQ(server_.ask(begin("pay 5")), "run|");
    EXPECT_EQ(server_.ask("SELECT count(*) FROM paid"), "0");
}

TEST_F(Requests, ARollbackForgetsTheRequestWithItsWork) {
    auto session = server_.connect();
    session.ask("BEGIN; SAVEPOINT s");
    EXPECT_EQ(session.ask(begin("pay 5")), "run|");
    session.ask("ROLLBACK TO s");
    EXPECT_TRUE(is_error(session.ask(finish), "55000"));
    session.ask("ROLLBACK");
    EXPECT_TRUE(is_error(session.ask(finish), "55000"));
    session.ask("BEGIN; SELECT dibs.begin_request('r1', 'pay 6')");
    EXPECT_EQ(session.ask(finish), "");
    session.ask("COMMIT");
    EXPECT_EQ(server_.ask(begin("pay 6")), "replay|answer");
}

TEST_F(Requests, SeveralFitIntoOneTransaction) {
    auto session = server_.connect();
    session.ask("BEGIN");
    EXPECT_EQ(session.ask(begin("pay 5")), "run|");
    EXPECT_EQ(session.ask("SELECT outcome FROM dibs.begin_request('r2', 'pay 6')"), "run");
    EXPECT_EQ(session.ask(finish), "");
    EXPECT_EQ(session.ask("SELECT dibs.finish_request('r2', 'second')"), "");
    EXPECT_EQ(session.ask(begin("pay 5")), "replay|answer");
    session.ask("COMMIT");
    EXPECT_EQ(server_.ask("SELECT result FROM dibs.begin_request('r2', 'pay 6')"), "second");
}

TEST_F(Requests, AKeyThatCannotBeKeptIsRefusedBeforeTheWork) {
    EXPECT_TRUE(
        is_error(server_.ask("SELECT dibs.begin_request(repeat('k', 1025), 'p')"), "22023"));
    EXPECT_EQ(server_.ask("BEGIN; SELECT dibs.begin_request(repeat('k', 1024), 'p');"
                          "SELECT dibs.finish_request(repeat('k', 1024), 'a'); COMMIT"),
              "");
}

TEST_F(Requests, AnOldSnapshotDoesNotLetItRunTwice) {
    auto first = server_.connect();
    auto second = server_.connect();
    second.ask("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM paid");
    first.ask("BEGIN");
    first.ask(begin("pay 5"));
    first.ask("INSERT INTO paid VALUES(5)");
    first.ask(finish);
    first.ask("COMMIT");
    EXPECT_EQ(second.ask(begin("pay 5")), "run|");
    EXPECT_EQ(second.ask("INSERT INTO paid VALUES(5)"), "1");
    EXPECT_TRUE(is_error(second.ask(finish), "40001"));
    second.ask("COMMIT");
    EXPECT_EQ(server_.ask("SELECT count(*) FROM paid"), "1");
}

TEST_F(Requests, AreForgottenWhenTheirTimeIsOver) {
    const auto done = [&](const std::string& key, const std::string& keep) {
        return server_.ask("BEGIN; SELECT dibs.begin_request('" + key +
                           "', 'p'); SELECT dibs.finish_request('" + key + "', 'a', '" + keep +
                           "'); COMMIT");
    };
    EXPECT_EQ(done("r1", "1 microsecond"), "");
    EXPECT_EQ(done("r2", "1 hour"), "");
    EXPECT_EQ(server_.ask("SELECT string_agg(key, ' ') FROM dibs.guard_request"), "r2");
    EXPECT_EQ(done("r1", "1 hour"), "");
    ASSERT_EQ(server_.ask("UPDATE dibs.guard_request SET expires_at = clock_timestamp()"), "2");
    EXPECT_EQ(server_.ask(begin("another payload")), "run|");
    EXPECT_EQ(server_.ask("SELECT dibs.purge_requests(1)"), "1");
    EXPECT_EQ(server_.ask("SELECT dibs.purge_requests()"), "1");
    EXPECT_TRUE(is_error(done("r3", "0"), "22023"));
}

}  // namespace
}  // namespace dibs::testing
