// SPDX-License-Identifier: Apache-2.0
// Goal: several writers of a row lose no update, and stock never goes below zero. Method: the SQL
// functions and sessions that interleave, on a real server.
#include "guarded_server.hpp"

#include <dibs/postgres.hpp>

#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace dibs::testing {
namespace {

class Rows : public ::testing::Test {
  protected:
    Rows() {
        EXPECT_EQ(server_.ask("CREATE TABLE product(id int PRIMARY KEY, stock int);"
                              "INSERT INTO product VALUES(1, 10), (2, 20);"
                              "SELECT dibs.versioned('product')"),
                  "");
    }
    std::string row(int id) {
        return server_.ask("SELECT stock, version FROM product WHERE id = " + std::to_string(id));
    }

    guarded_server server_;
};

TEST_F(Rows, AVersionThatWasReadIsWrittenOnce) {
    const std::string write = R"(SELECT dibs.update_versioned('product', '{"id": 1}', 1, )";
    EXPECT_EQ(server_.ask(write + R"('{"stock": 7}'))"), "2");
    auto late = server_.connect();
    EXPECT_TRUE(is_error(late.ask(write + R"('{"stock": 8}'))"), "ZD003"));
    EXPECT_EQ(late.detail(), R"({"table": "public.product", "current": 2, "version": 1})");
    // Again and again, until the row is read anew (case 177).
    EXPECT_TRUE(is_error(late.ask(write + R"('{"stock": 8}'))"), "ZD003"));
    EXPECT_EQ(row(1), "7|2");
    EXPECT_TRUE(is_error(
        late.ask(R"(SELECT dibs.update_versioned('product', '{"id": 3}', 1, '{"stock": 8}'))"),
        "ZD004"));
    EXPECT_TRUE(is_error(
        late.ask(R"(SELECT dibs.update_versioned('product', '{"id; DROP": 3}', 1, '{"x": 8}'))"),
        "42703"));
}

// Case 175.
TEST_F(Rows, WritersThatKnowOfNoVersionAreCountedToo) {
    EXPECT_EQ(server_.ask("UPDATE product SET stock = stock - 1"), "2");
    EXPECT_EQ(row(1), "9|2");
    EXPECT_EQ(row(2), "19|2");
    EXPECT_TRUE(is_error(
        server_.ask(R"(SELECT dibs.update_versioned('product', '{"id": 2}', 1, '{"stock": 8}'))"),
        "ZD003"));
    // Whoever writes a whole row back that was read before.
    EXPECT_TRUE(
        is_error(server_.ask("UPDATE product SET stock = 1, version = 1 WHERE id = 1"), "ZD003"));
    EXPECT_EQ(server_.ask("UPDATE product SET stock = 1, version = 2 WHERE id = 1"), "1");
    EXPECT_EQ(server_.ask("UPDATE product SET stock = 2, version = version + 1 WHERE id = 1"), "1");
    EXPECT_EQ(row(1), "2|4");
}

// Case 175: many rows in one statement.
TEST_F(Rows, ABulkChangeCountsEachRowAndOneStaleRowRefusesAll) {
    ASSERT_EQ(server_.ask("INSERT INTO product SELECT i, 10 FROM generate_series(3, 500) i;"
                          "CREATE TABLE seen AS SELECT id, version FROM product"),
              "500");
    for (const int rows : {1, 2, 500}) {
        const auto upto = " WHERE id <= " + std::to_string(rows);
        ASSERT_EQ(server_.ask("UPDATE seen SET version = p.version FROM product p WHERE p.id = "
                              "seen.id"),
                  "500");
        EXPECT_EQ(server_.ask("UPDATE product SET stock = stock + 1" + upto), std::to_string(rows));
        EXPECT_EQ(
            server_.ask("SELECT count(*) FROM product p JOIN seen USING (id) WHERE p.version = "
                        "seen.version + 1"),
            std::to_string(rows));
        // Whoever has read before is refused for each of them.
        EXPECT_EQ(server_.ask("CREATE TABLE refused(id int); DO $$ DECLARE r seen; BEGIN FOR r IN "
                              "SELECT * FROM seen" +
                              upto +
                              " LOOP BEGIN PERFORM dibs.update_versioned('product', "
                              "jsonb_build_object('id', r.id), r.version, '{\"stock\": 0}'); "
                              "EXCEPTION WHEN SQLSTATE 'ZD003' THEN INSERT INTO refused "
                              "VALUES(r.id); END; END LOOP; END $$; SELECT count(*) FROM refused"),
                  std::to_string(rows));
        server_.ask("DROP TABLE refused");
    }
    const std::string write_back =
        "UPDATE product p SET stock = 0, version = s.version FROM seen s WHERE s.id = p.id";
    EXPECT_TRUE(is_error(server_.ask(write_back), "ZD003"));
    // All are fresh but one: nothing is written.
    ASSERT_EQ(server_.ask("UPDATE seen SET version = p.version FROM product p WHERE p.id = seen.id "
                          "AND p.id <> 250"),
              "499");
    EXPECT_TRUE(is_error(server_.ask(write_back), "ZD003"));
    EXPECT_EQ(server_.ask("SELECT count(*) FROM product WHERE stock = 0"), "0");
    ASSERT_EQ(server_.ask("UPDATE seen SET version = version + 1 WHERE id = 250"), "1");
    EXPECT_EQ(server_.ask(write_back), "500");
}

TEST_F(Rows, TakesOnlyWhatIsThere) {
    const auto take = [&](int id, int amount) {
        return server_.ask(R"(SELECT * FROM dibs.take('product', '{"id": )" + std::to_string(id) +
                           "}', 'stock', " + std::to_string(amount) + ")");
    };
    EXPECT_EQ(take(1, 3), "taken|7");
    EXPECT_EQ(take(1, 8), "too_little|7");
    EXPECT_EQ(take(1, 7), "taken|0");
    EXPECT_EQ(take(9, 1), "no_row|");
    EXPECT_TRUE(is_error(take(1, 0), "22023"));
    EXPECT_TRUE(is_error(take(1, -5), "22023"));
    EXPECT_EQ(row(1), "0|3");
}

// Case 173: 200 purchases of 1 to 3.
TEST_F(Rows, ManyBuyersGetWhatIsThereAndNotMore) {
    ASSERT_EQ(server_.ask("CREATE TABLE bought(n int)"), "");
    std::vector<postgres_session> buyers;
    for (int buyer = 0; buyer < 8; ++buyer) {
        buyers.push_back(server_.connect());
        buyers.back().send(
            "DO $$ DECLARE n int; BEGIN FOR i IN 1..25 LOOP n := 1 + i % 3; "
            "IF (dibs.take('product', '{\"id\": 1}', 'stock', n)).outcome = 'taken' THEN "
            "INSERT INTO bought VALUES(n); END IF; COMMIT; END LOOP; END $$");
    }
    for (auto& buyer : buyers) {
        EXPECT_EQ(buyer.finish(), "");
    }
    EXPECT_EQ(server_.ask("SELECT sum(n) FROM bought"), "10");
    EXPECT_TRUE(row(1).starts_with("0|"));
}

TEST_F(Rows, WhatAColumnCannotHoldExactlyIsNotTaken) {
    ASSERT_EQ(
        server_.ask("CREATE TABLE part(id int PRIMARY KEY, n numeric(5,2), f float8, big float8);"
                    "INSERT INTO part VALUES(1, 10, 10, 1e17)"),
        "1");
    const auto take = [&](const std::string& table, const std::string& column, const char* amount) {
        return server_.ask("SELECT * FROM dibs.take('" + table + "', '{\"id\": 1}', '" + column +
                           "', " + amount + ")");
    };
    EXPECT_TRUE(is_error(take("product", "stock", "2.5"), "22023"));
    EXPECT_TRUE(is_error(take("product", "stock", "0.4"), "22023"));
    EXPECT_EQ(take("product", "stock", "99999999999.5"), "too_little|10");
    EXPECT_EQ(row(1), "10|1");
    EXPECT_TRUE(is_error(take("part", "n", "0.005"), "22023"));
    EXPECT_EQ(take("part", "n", "0.05"), "taken|9.95");
    EXPECT_EQ(take("part", "f", "3.3"), "taken|6.7");
    EXPECT_TRUE(is_error(take("part", "big", "0.1"), "22023"));
    EXPECT_TRUE(is_error(take("part", "nothing", "1"), "42703"));
    // Without end less without end is no number.
    ASSERT_EQ(server_.ask("UPDATE part SET big = 'Infinity'"), "1");
    for (const char* amount : {"'Infinity'", "'NaN'"}) {
        EXPECT_TRUE(is_error(take("part", "big", amount), "22023")) << amount;
    }
    EXPECT_EQ(take("part", "big", "5"), "taken|Infinity");
}

TEST_F(Rows, AKeyOfSeveralRowsIsRefusedAndChangesNothing) {
    ASSERT_EQ(
        server_.ask("ALTER TABLE product ADD COLUMN kind text; UPDATE product SET kind = 'a'"),
        "2");
    const std::string named = R"(('product', '{"kind": "a"}')";
    EXPECT_TRUE(is_error(server_.ask("SELECT dibs.take" + named + ", 'stock', 3)"), "21000"));
    // Also where one of them alone has enough, or is of that version.
    EXPECT_TRUE(is_error(server_.ask("SELECT dibs.take" + named + ", 'stock', 15)"), "21000"));
    EXPECT_EQ(server_.ask("UPDATE product SET kind = 'a' WHERE id = 2"), "1");
    for (const char* version : {"2", "3"}) {
        EXPECT_TRUE(is_error(server_.ask("SELECT dibs.update_versioned" + named + ", " + version +
                                         ", '{\"stock\": 1}')"),
                             "21000"));
    }
    EXPECT_TRUE(is_error(server_.ask("SELECT dibs.lock_row" + named + ")"), "21000"));
    EXPECT_EQ(row(1), "10|2");
    EXPECT_EQ(row(2), "20|3");
}

TEST_F(Rows, WithoutAVersionNothingIsWritten) {
    EXPECT_TRUE(is_error(
        server_.ask(
            R"(SELECT dibs.update_versioned('product', '{"id": 1}', NULL, '{"stock": 1}'))"),
        "22004"));
    ASSERT_EQ(server_.ask("CREATE TABLE odd(id int, version bigint); INSERT INTO odd VALUES(1)"),
              "1");
    EXPECT_TRUE(
        is_error(server_.ask(R"(SELECT dibs.update_versioned('odd', '{"id": 1}', 1, '{"id": 2}'))"),
                 "22004"));
    EXPECT_TRUE(is_error(server_.ask("SELECT dibs.versioned('odd')"), "42804"));
    ASSERT_EQ(server_.ask("CREATE TABLE words(id int, version text NOT NULL)"), "");
    EXPECT_TRUE(is_error(server_.ask("SELECT dibs.versioned('words')"), "42804"));
}

TEST_F(Rows, ATableThatIsNullIsToldAsSuch) {
    for (const char* call : {"take(NULL, '{}', 'stock', 1)",
                             "lock_row(NULL, '{}')",
                             "lock_rows(NULL, 'id', '{1}')",
                             "update_versioned(NULL, '{}', 1, '{}')",
                             "versioned(NULL)",
                             "protect(NULL)",
                             "unprotect(NULL)",
                             "allow(NULL)"}) {
        const auto told = server_.ask(std::string{"SELECT dibs."} + call);
        EXPECT_TRUE(is_error(told, "22004")) << call << ": " << told;
        EXPECT_NE(told.find("is NULL"), std::string::npos) << told;
    }
}

TEST_F(Rows, ALockWithoutANameIsNone) {
    for (const char* call : {"xact_lock(NULL)", "xact_lock(NULL, '0')", "try_xact_lock(NULL)"}) {
        EXPECT_TRUE(is_error(server_.ask(std::string{"SELECT dibs."} + call), "22004")) << call;
    }
}

TEST_F(Rows, ARowLockWaitsForItsTimeAndNotLonger) {
    auto first = server_.connect();
    auto second = server_.connect();
    first.ask("BEGIN");
    EXPECT_EQ(first.ask(R"(SELECT dibs.lock_row('product', '{"id": 1}'))"),
              R"({"id": 1, "stock": 10, "version": 1})");
    const std::string at_once = R"(SELECT dibs.lock_row('product', '{"id": 1}', '0'))";
    EXPECT_TRUE(is_error(second.ask(at_once), "55P03"));
    EXPECT_TRUE(
        is_error(second.ask(R"(SELECT dibs.lock_row('product', '{"id": 1}', '20 ms'))"), "55P03"));
    EXPECT_EQ(second.ask("SHOW lock_timeout"), "0");
    EXPECT_EQ(second.ask(R"(SELECT dibs.lock_row('product', '{"id": 7}', '20 ms'))"), "");
    second.send(R"(SELECT dibs.lock_row('product', '{"id": 1}', '1 minute'))");
    ASSERT_TRUE(eventually([&] { return server_.has_waiting_session(); }));
    first.ask("UPDATE product SET stock = 4 WHERE id = 1");
    first.ask("COMMIT");
    EXPECT_EQ(second.finish(), R"({"id": 1, "stock": 4, "version": 2})");
}

// Case 183.
TEST_F(Rows, RowsAreLockedInOneOrder) {
    ASSERT_EQ(server_.ask("INSERT INTO product SELECT i, 1 FROM generate_series(3, 40) i"), "38");
    std::vector<postgres_session> workers;
    for (int worker = 0; worker < 3; ++worker) {
        workers.push_back(server_.connect());
        workers.back().send(
            "DO $$ BEGIN FOR i IN 1..350 LOOP PERFORM dibs.lock_rows('product', 'id', "
            "(SELECT array_agg(n) FROM (SELECT (1 + random() * 39)::int::text AS n "
            "FROM generate_series(1, 20)) s)); COMMIT; END LOOP; END $$");
    }
    for (auto& worker : workers) {
        EXPECT_EQ(worker.finish(), "");
    }
    auto one = server_.connect();
    one.ask("BEGIN; SELECT dibs.lock_rows('product', 'id', '{2}')");
    EXPECT_EQ(
        server_.ask("SELECT count(*) FROM dibs.lock_rows('product', 'id', '{1,2,3,3}', true)"),
        "2");
    ASSERT_EQ(server_.ask("CREATE VIEW cheap AS SELECT * FROM product WHERE id < 5"), "");
    EXPECT_EQ(server_.ask("SELECT count(*) FROM dibs.lock_rows('cheap', 'id', '{1,3,9}')"), "2");
}

// What a sort makes of equal rows depends on all the others, so on what else was asked for.
TEST_F(Rows, RowsOfOneValueAreLockedInOneOrderToo) {
    ASSERT_EQ(
        server_.ask("CREATE TABLE seat(hall int, number int, PRIMARY KEY (number) INCLUDE (hall));"
                    "CREATE TABLE chair(hall int, number int);"
                    "INSERT INTO seat SELECT i % 3, i FROM generate_series(1, 300) i;"
                    "INSERT INTO chair SELECT i % 3, i FROM generate_series(1, 300) i"),
        "300");
    for (const std::string table : {"seat", "chair"}) {
        const auto order = [&](const std::string& halls) {
            return server_.ask("SELECT string_agg(r ->> 'number', ' ') FROM dibs.lock_rows('" +
                               table + "', 'hall', '" + halls + "') r WHERE r ->> 'hall' = '0'");
        };
        const auto alone = order("{0}");
        EXPECT_NE(alone, "");
        for (const std::string halls : {"{0,1}", "{1,0}", "{2,1,0}", "{0,0,2}"}) {
            EXPECT_EQ(order(halls), alone) << table << halls;
        }
    }
}

// A table that is being changed is nobody's row: whoever would not wait for a row does not wait for that
// either, and the rest wait as long as they said.
TEST_F(Rows, ALockOfTheTableIsWaitedForAsLongAsWasSaid) {
    auto owner = server_.connect();
    owner.ask("BEGIN; LOCK TABLE product IN ACCESS EXCLUSIVE MODE");
    auto caller = server_.connect();
    EXPECT_TRUE(
        is_error(caller.ask(R"(SELECT dibs.lock_row('product', '{"id": 1}', '0'))"), "55P03"));
    caller.ask("SET lock_timeout = '30ms'");
    EXPECT_TRUE(
        is_error(caller.ask("SELECT dibs.lock_rows('product', 'id', '{1,2}', skip_locked => true)"),
                 "55P03"));
    EXPECT_EQ(caller.ask("SHOW lock_timeout"), "30ms");
    caller.ask("SET lock_timeout = 0");
    EXPECT_EQ(postgres::with_row_lock(
                  caller.raw(), {"product", "id", "1"}, std::chrono::milliseconds{0}, [](auto&) {}),
              postgres::locked::busy);
    caller.send("SELECT count(*) FROM dibs.lock_rows('product', 'id', '{1,2}', true)");
    ASSERT_TRUE(eventually([&] { return server_.has_waiting_session(); }));
    owner.ask("COMMIT");
    EXPECT_EQ(caller.finish(), "2");
    EXPECT_EQ(caller.ask("SHOW lock_timeout"), "0");
}

// Case 181: workers that take what nobody has, and some of which die at it.
TEST_F(Rows, EachRowIsWorkedOnOnceWhoeverDies) {
    const int rows = 1500;
    ASSERT_EQ(server_.ask("CREATE TABLE job(id int PRIMARY KEY, priority int, done int NOT NULL "
                          "DEFAULT 0) WITH (autovacuum_enabled = off);"
                          "INSERT INTO job SELECT i, i % 7 FROM generate_series(1, " +
                          std::to_string(rows) + ") i"),
              std::to_string(rows));
    std::atomic<int> died{0};
    std::vector<std::thread> workers;
    for (unsigned worker = 0; worker < 8; ++worker) {
        workers.emplace_back([&, worker] {
            std::minstd_rand random{worker + 1};
            std::optional<postgres_session> session{server_.connect()};
            for (;;) {
                session->ask("BEGIN; SET LOCAL lock_timeout = '1ms'");
                const auto mine = session->ask(
                    "SELECT string_agg(j ->> 'id', ',') FROM dibs.lock_rows('job', 'id', "
                    "ARRAY(SELECT id::text FROM job WHERE done = 0 ORDER BY priority, id LIMIT "
                    "20), true) j WHERE j ->> 'done' = '0'");
                if (mine.empty()) {
                    session->ask("ROLLBACK");
                    if (session->ask("SELECT count(*) FROM job WHERE done = 0") == "0") {
                        return;
                    }
                    continue;
                }
                session->ask("SET LOCAL lock_timeout = 0");
                const auto worked =
                    session->ask("UPDATE job SET done = done + 1 WHERE id IN (" + mine + ")");
                if (worked.find(':') != std::string::npos) {
                    ADD_FAILURE() << mine << " -> " << worked;  // it waited, and gave up
                    return;
                }
                if (random() % 8 == 0) {
                    // As after kill -9: nothing more is said, and nobody listens.
                    ::shutdown(::PQsocket(session->raw()), SHUT_RDWR);
                    session.emplace(server_.connect());
                    ++died;
                } else {
                    session->ask("COMMIT");
                }
            }
        });
    }
    for (auto& worker : workers) {
        worker.join();
    }
    EXPECT_EQ(server_.ask("SELECT count(*), min(done), max(done) FROM job"),
              std::to_string(rows) + "|1|1");
    EXPECT_GT(died, 0);
}

// Case 054: who waits in vain in a transaction of its own goes on with it.
TEST_F(Rows, AWaitForANameThatIsOverLeavesTheTransactionAsItWas) {
    auto holder = server_.connect();
    holder.ask("BEGIN");
    EXPECT_EQ(holder.ask("SELECT dibs.try_xact_lock('k')"), "t");
    auto caller = server_.connect();
    caller.ask("BEGIN");
    EXPECT_EQ(caller.ask("INSERT INTO product VALUES(3, 30)"), "1");
    EXPECT_EQ(caller.ask("SELECT dibs.xact_lock('k', '20 ms')"), "f");
    EXPECT_FALSE(postgres::xact_lock(caller.raw(), "k", std::chrono::milliseconds{20}));
    EXPECT_EQ(caller.ask("COMMIT"), "");
    EXPECT_EQ(row(3), "30|1");
    holder.ask("COMMIT");
    // What a savepoint took goes with it.
    caller.ask("BEGIN; SAVEPOINT s");
    EXPECT_EQ(caller.ask("SELECT dibs.xact_lock('k', '1 minute')"), "t");
    EXPECT_EQ(holder.ask("SELECT dibs.try_xact_lock('k')"), "f");
    caller.ask("ROLLBACK TO s");
    EXPECT_EQ(holder.ask("SELECT dibs.try_xact_lock('k')"), "t");
    EXPECT_EQ(caller.ask("COMMIT"), "");
}

// Case 060: a lock that is taken several times is one, and gone with its transaction.
TEST_F(Rows, ALockByNameIsOneLockHoweverOftenItIsTaken) {
    const std::string locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'";
    for (const auto* scans : {"on", "off"}) {
        for (const int jobs : {10, 1000, 20'000}) {
            ASSERT_EQ(server_.ask("DROP TABLE IF EXISTS job; CREATE TABLE job(id int PRIMARY KEY);"
                                  "INSERT INTO job SELECT generate_series(1, " +
                                  std::to_string(jobs) + "); ANALYZE job"),
                      "");
            auto session = server_.connect();
            session.ask("SET enable_indexscan = " + std::string{scans});
            session.ask("BEGIN");
            // As the guide says: the row first, and then its name.
            EXPECT_EQ(
                session.ask("SELECT dibs.try_xact_lock('job:' || id) FROM (SELECT id FROM job "
                            "WHERE id > 3 ORDER BY id LIMIT 1) j"),
                "t");
            EXPECT_EQ(server_.ask(locks), "1") << scans << jobs;
            EXPECT_EQ(
                session.ask("SELECT dibs.try_xact_lock('job:4'), dibs.xact_lock('job:4', '1 s')"),
                "t|t");
            EXPECT_EQ(server_.ask(locks), "1");
            EXPECT_EQ(server_.ask("SELECT dibs.try_xact_lock('job:4')"), "f");
            session.ask("COMMIT");
            EXPECT_EQ(server_.ask(locks), "0");
        }
    }
}

TEST_F(Rows, ALockByNameIsOfOneTransaction) {
    auto first = server_.connect();
    auto second = server_.connect();
    first.ask("BEGIN");
    EXPECT_EQ(first.ask("SELECT dibs.try_xact_lock('invoice:1')"), "t");
    EXPECT_EQ(second.ask("SELECT dibs.try_xact_lock('invoice:1')"), "f");
    EXPECT_EQ(second.ask("SELECT dibs.try_xact_lock('invoice:2')"), "t");
    EXPECT_EQ(second.ask("SELECT dibs.xact_lock('invoice:1', '20 ms')"), "f");
    EXPECT_EQ(second.ask("SELECT dibs.xact_lock('invoice:1', '0')"), "f");
    second.ask("BEGIN");
    second.send("SELECT dibs.xact_lock('invoice:1', '1 minute')");
    ASSERT_TRUE(eventually([&] { return server_.has_waiting_session(); }));
    first.ask("ROLLBACK");
    EXPECT_EQ(second.finish(), "t");
    EXPECT_EQ(first.ask("SELECT dibs.try_xact_lock('invoice:1')"), "f");
    EXPECT_EQ(second.ask("SHOW lock_timeout"), "0");
    second.ask("ROLLBACK TO nothing");
    second.ask("ROLLBACK");
    EXPECT_EQ(first.ask("SELECT dibs.try_xact_lock('invoice:1')"), "t");
    // Two names that hashtext() takes for one.
    first.ask("BEGIN; SELECT dibs.try_xact_lock('invoice:76052')");
    EXPECT_EQ(second.ask("SELECT hashtext('invoice:76052') = hashtext('invoice:127095')"), "t");
    EXPECT_EQ(second.ask("SELECT dibs.try_xact_lock('invoice:127095')"), "t");
}

TEST_F(Rows, TheNumberOfANameIsTheDocumentedOne) {
    // printf 'dibs\0invoice:1' | sha256sum | head -c 16
    EXPECT_EQ(server_.ask("SELECT to_hex(dibs.lock_number('invoice:1'))"), "805e300bd7e96a65");
}

}  // namespace
}  // namespace dibs::testing
