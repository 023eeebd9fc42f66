// SPDX-License-Identifier: Apache-2.0
// Goal: a protected table refuses whoever is late, by whatever way the write comes, and nobody else.
// Method: sessions that interleave, on a real server.
#include "guarded_server.hpp"

#include <string>
#include <vector>

namespace dibs::testing {
namespace {

/// `product`: two rows; protected.
class Fence : public ::testing::Test {
  protected:
    explicit Fence(const postgres_server::words& settings = {}) : server_(settings) {
        EXPECT_EQ(server_.ask("CREATE TABLE product(id int PRIMARY KEY, stock int);"
                              "INSERT INTO product VALUES(1, 10), (2, 20);"
                              "SELECT dibs.protect('product')"),
                  "");
    }

    /// One transaction of its own. The answer of the statement.
    std::string write(int fence, const std::string& statement) {
        auto session = server_.connect();
        session.ask("BEGIN");
        const auto given = session.ask("SELECT dibs.fence('k', " + std::to_string(fence) + ")");
        const auto told = given == std::to_string(fence) ? session.ask(statement) : given;
        session.ask("COMMIT");
        detail_ = session.detail();
        return told;
    }
    std::string rows() { return server_.ask("SELECT id, stock, fence FROM product ORDER BY id"); }

    guarded_server server_;
    std::string detail_;
};

TEST_F(Fence, AnOlderOneIsRefusedAndTheSameOneWritesAgain) {
    EXPECT_EQ(write(5, "UPDATE product SET stock = 9 WHERE id = 1"), "1");
    EXPECT_EQ(write(5, "UPDATE product SET stock = 8 WHERE id = 1"), "1");
    EXPECT_TRUE(is_error(write(4, "UPDATE product SET stock = 1 WHERE id = 1"), "ZD001"));
    EXPECT_EQ(detail_, R"({"key": "k", "fence": 4, "table": "public.product", "newest": 5})");
    EXPECT_EQ(write(6, "UPDATE product SET stock = 7 WHERE id = 1"), "1");
    EXPECT_EQ(rows(), "1|7|6\n2|20|");
}

TEST_F(Fence, ARowOfBeforeTakesAnyFence) {
    EXPECT_EQ(write(1, "UPDATE product SET stock = 19 WHERE id = 2"), "1");
    EXPECT_EQ(rows(), "1|10|\n2|19|1");
}

TEST_F(Fence, DeletesOfStaleHoldersAreRefused) {
    EXPECT_EQ(write(5, "UPDATE product SET stock = 9"), "2");
    EXPECT_TRUE(is_error(write(4, "DELETE FROM product WHERE id = 1"), "ZD001"));
    EXPECT_EQ(write(5, "DELETE FROM product WHERE id = 1"), "1");
    EXPECT_EQ(rows(), "2|9|5");
}

TEST_F(Fence, AStatementOnManyRowsIsRefusedAsAWhole) {
    EXPECT_EQ(write(5, "UPDATE product SET stock = 9 WHERE id = 2"), "1");
    EXPECT_TRUE(is_error(write(4, "UPDATE product SET stock = 0"), "ZD001"));
    EXPECT_EQ(rows(), "1|10|\n2|9|5");
}

TEST_F(Fence, NoFenceIsRefusedUnlessAllowedAndNeverLowersWhatIsThere) {
    EXPECT_TRUE(is_error(server_.ask("UPDATE product SET stock = 1"), "ZD002"));
    EXPECT_TRUE(is_error(server_.ask("INSERT INTO product VALUES(3, 1)"), "ZD002"));
    EXPECT_TRUE(is_error(server_.ask("DELETE FROM product"), "ZD002"));
    EXPECT_TRUE(is_error(server_.ask("TRUNCATE product"), "ZD002"));
    EXPECT_EQ(write(5, "UPDATE product SET stock = 9 WHERE id = 1"), "1");

    EXPECT_EQ(server_.ask("SELECT dibs.protect('product', unfenced => 'allow')"), "");
    EXPECT_EQ(server_.ask("UPDATE product SET stock = 3, fence = 1 WHERE id = 1"), "1");
    EXPECT_EQ(server_.ask("INSERT INTO product VALUES(3, 30, 99)"), "1");
    EXPECT_EQ(rows(), "1|3|5\n2|20|\n3|30|");
    EXPECT_TRUE(is_error(write(4, "UPDATE product SET stock = 1 WHERE id = 1"), "ZD001"));
    EXPECT_EQ(server_.ask("TRUNCATE product"), "");
}

TEST_F(Fence, IsGoneWithItsTransactionAndWithItsSavepoint) {
    auto session = server_.connect();
    EXPECT_EQ(session.ask("SELECT dibs.fence('k', 5)"), "5");
    EXPECT_TRUE(is_error(session.ask("UPDATE product SET stock = 1"), "ZD002"));
    session.ask("BEGIN");
    session.ask("SAVEPOINT s");
    EXPECT_EQ(session.ask("SELECT dibs.fence('k', 5)"), "5");
    session.ask("ROLLBACK TO s");
    EXPECT_TRUE(is_error(session.ask("UPDATE product SET stock = 1"), "ZD002"));
    session.ask("ROLLBACK");
    EXPECT_EQ(rows(), "1|10|\n2|20|");
}

TEST_F(Fence, IsGivenWithinTheStatement) {
    EXPECT_EQ(server_.ask("UPDATE product SET stock = 9 FROM dibs.fence('k', 5) WHERE id = 1"),
              "1");
    EXPECT_TRUE(is_error(
        server_.ask("UPDATE product SET stock = 1 FROM dibs.fence('k', 4) WHERE id = 1"), "ZD001"));
    EXPECT_EQ(server_.ask("INSERT INTO product SELECT 3, 30 FROM dibs.fence('k', 4)"), "1");
    EXPECT_EQ(rows(), "1|9|5\n2|20|\n3|30|4");
}

TEST_F(Fence, RefusalsAreCountedThoughTheirTransactionsAreRolledBack) {
    EXPECT_EQ(server_.refused("public.product"), "0");
    EXPECT_EQ(write(5, "UPDATE product SET stock = 9"), "2");
    EXPECT_TRUE(is_error(write(4, "UPDATE product SET stock = 1"), "ZD001"));
    EXPECT_TRUE(is_error(server_.ask("UPDATE product SET stock = 1"), "ZD002"));
    auto session = server_.connect();
    session.ask("BEGIN");
    session.ask("SELECT dibs.fence('k', 4)");
    session.ask("SAVEPOINT s");
    EXPECT_TRUE(is_error(session.ask("UPDATE product SET stock = 1"), "ZD001"));
    session.ask("ROLLBACK TO s");
    EXPECT_EQ(session.ask("INSERT INTO product VALUES(3, 30)"), "1");
    session.ask("COMMIT");
    EXPECT_EQ(server_.refused("public.product"), "3");
    EXPECT_EQ(rows(), "1|9|5\n2|9|5\n3|30|4");
    // A new protect() of the same table goes on counting.
    EXPECT_EQ(server_.ask("SELECT dibs.protect('product', unfenced => 'allow')"), "");
    EXPECT_EQ(server_.refused("public.product"), "3");
}

// Whoever truncates may restart what the columns own, and the count is one of them.
TEST_F(Fence, RestartingTheIdentityKeepsTheCountOfRefusals) {
    EXPECT_TRUE(is_error(server_.ask("UPDATE product SET stock = 1"), "ZD002"));
    EXPECT_TRUE(is_error(server_.ask("UPDATE product SET stock = 1"), "ZD002"));
    EXPECT_EQ(write(5, "TRUNCATE product RESTART IDENTITY"), "");
    EXPECT_EQ(server_.refused("public.product"), "2");
    EXPECT_TRUE(is_error(server_.ask("INSERT INTO product VALUES(1, 1)"), "ZD002"));
    EXPECT_EQ(server_.refused("public.product"), "3");
    // Also of one that is rolled back, and of a whole partitioned table.
    auto session = server_.connect();
    session.ask("BEGIN; SELECT dibs.fence('k', 6)");
    EXPECT_EQ(session.ask("TRUNCATE product RESTART IDENTITY"), "");
    session.ask("ROLLBACK");
    EXPECT_EQ(server_.refused("public.product"), "3");
    ASSERT_EQ(server_.ask("CREATE TABLE sale(id serial, day int) PARTITION BY RANGE (day);"
                          "CREATE TABLE sale_1 PARTITION OF sale FOR VALUES FROM (0) TO (10);"
                          "SELECT dibs.protect('sale')"),
              "");
    EXPECT_TRUE(is_error(server_.ask("INSERT INTO sale(day) VALUES(1)"), "ZD002"));
    EXPECT_EQ(write(5, "TRUNCATE sale_1 RESTART IDENTITY"), "");
    EXPECT_EQ(write(5, "TRUNCATE sale RESTART IDENTITY"), "");
    EXPECT_EQ(server_.refused("public.sale"), "1");
}

TEST_F(Fence, RefusalsAreCountedByKeyToo) {
    const auto of_key = [&](const std::string& key) {
        return server_.ask("SELECT dibs.guard_refused('" + key + "')");
    };
    EXPECT_EQ(of_key("k"), "0");
    EXPECT_EQ(write(5, "UPDATE product SET stock = 9"), "2");
    EXPECT_TRUE(is_error(write(4, "UPDATE product SET stock = 1"), "ZD001"));
    EXPECT_EQ(of_key("k"), "1");
    EXPECT_EQ(server_.ask("SELECT dibs.claim('k', 6)"), "6");
    EXPECT_TRUE(is_error(server_.ask("SELECT dibs.claim('k', 5)"), "ZD001"));
    EXPECT_EQ(of_key("k"), "2");
    EXPECT_EQ(of_key("other"), "0");
    ASSERT_EQ(server_.ask("SELECT dibs.protect('product', 'product:{id}')"), "");
    EXPECT_TRUE(is_error(server_.ask("UPDATE product SET stock = 1 WHERE id = 2"), "ZD002"));
    EXPECT_EQ(of_key("product:2"), "1");
    EXPECT_EQ(of_key("product:1"), "0");
    // Of many keys each is told no less than what it was refused, and most no more.
    ASSERT_EQ(
        server_.ask("DO $$ BEGIN FOR i IN 1..20 LOOP FOR n IN 1..i LOOP BEGIN "
                    "PERFORM dibs.refuse_stale('dibs.refused_claims', 'many:' || i, 1, 2, NULL); "
                    "EXCEPTION WHEN SQLSTATE 'ZD001' THEN NULL; END; END LOOP; END LOOP; END $$"),
        "");
    EXPECT_EQ(server_.ask("SELECT bool_and(dibs.guard_refused('many:' || i) >= i) FROM "
                          "generate_series(1, 20) i"),
              "t");
    EXPECT_EQ(server_.ask("SELECT count(*) >= 10 FROM generate_series(1, 20) i WHERE "
                          "dibs.guard_refused('many:' || i) = i"),
              "t");
    // Anybody may look and count up, and nobody down.
    ASSERT_EQ(server_.ask("CREATE ROLE app LOGIN; GRANT ALL ON product TO app"), "");
    auto app = server_.connect("postgres", "app");
    EXPECT_TRUE(is_error(app.ask("UPDATE product SET stock = 1 WHERE id = 1"), "ZD002"));
    EXPECT_EQ(app.ask("SELECT dibs.guard_refused('product:1')"), "1");
    EXPECT_TRUE(is_error(app.ask("SELECT setval('dibs.refused_1_0', 1)"), "42501"));
}

TEST_F(Fence, TheReportTellsWhatIsOpenAllTheSame) {
    ASSERT_EQ(server_.ask("CREATE TABLE sale(id int, day int) PARTITION BY RANGE (day);"
                          "CREATE TABLE sale_1 PARTITION OF sale FOR VALUES FROM (0) TO (10);"
                          "CREATE TABLE sale_2 PARTITION OF sale FOR VALUES FROM (10) TO (20);"
                          "SELECT dibs.protect('sale')"),
              "");
    const std::string enabled = "SELECT enabled FROM dibs.guard_report() WHERE relation = ";
    const std::string gaps = "SELECT * FROM dibs.guard_gaps()";
    EXPECT_EQ(server_.ask(enabled + "'public.sale'"), "t");
    EXPECT_EQ(server_.ask(gaps), "");
    ASSERT_EQ(server_.ask("ALTER TABLE sale_2 DISABLE TRIGGER zzz_dibs_fence"), "");
    EXPECT_EQ(server_.ask(enabled + "'public.sale'"), "f");
    EXPECT_EQ(server_.ask(enabled + "'public.product'"), "t");
    EXPECT_EQ(server_.ask(gaps), "public.sale|public.sale_2|writes");
    ASSERT_EQ(server_.ask("ALTER TABLE sale_2 ENABLE TRIGGER zzz_dibs_fence;"
                          "CREATE TABLE sale_3 PARTITION OF sale FOR VALUES FROM (20) TO (30)"),
              "");
    EXPECT_EQ(server_.ask(enabled + "'public.sale'"), "t");
    EXPECT_EQ(server_.ask(gaps), "public.sale|public.sale_3|TRUNCATE of it by name");
    EXPECT_EQ(server_.ask("SELECT dibs.protect('sale')"), "");
    EXPECT_EQ(server_.ask(gaps), "");
    EXPECT_TRUE(is_error(server_.ask("TRUNCATE sale_3"), "ZD002"));
}

TEST_F(Fence, AKeyMayHoldAnyCharacter) {
    // What looks like a zero byte to who reads the trigger's arguments as escaped text.
    ASSERT_EQ(server_.ask(R"(SELECT dibs.protect('product', E'a\\000b\\''{id}é'))"), "");
    EXPECT_EQ(server_.ask("SELECT key, refused, enabled FROM dibs.guard_report() WHERE relation = "
                          "'public.product'"),
              R"(a\000b\'{id}é|0|t)");
    EXPECT_EQ(server_.ask(R"(UPDATE product SET stock = 9 FROM dibs.fence(E'a\\000b\\''1é', 5))"
                          " WHERE id = 1"),
              "1");
}

TEST_F(Fence, InsertOrUpdateGoesByTheRowThatIsThere) {
    const std::string upsert =
        "INSERT INTO product VALUES(1, 1) ON CONFLICT (id) DO UPDATE SET stock = excluded.stock";
    EXPECT_EQ(write(5, upsert), "1");
    EXPECT_TRUE(is_error(write(4, upsert), "ZD001"));
    EXPECT_EQ(write(4, "INSERT INTO product VALUES(1, 1) ON CONFLICT DO NOTHING"), "0");
    EXPECT_EQ(rows(), "1|1|5\n2|20|");
    EXPECT_TRUE(is_error(write(4,
                               "MERGE INTO product p USING (VALUES(1)) AS v(id) ON p.id = v.id "
                               "WHEN MATCHED THEN UPDATE SET stock = 2"),
                         "ZD001"));
}

TEST_F(Fence, CopyIsAWriteLikeOthers) {
    const auto copy = [&](const std::string& before) {
        auto session = server_.connect();
        session.ask("BEGIN");
        session.ask(before);
        session.send("COPY product(id, stock) FROM STDIN");
        PGresult* begun = ::PQgetResult(session.raw());
        EXPECT_EQ(::PQresultStatus(begun), PGRES_COPY_IN);
        ::PQclear(begun);
        ::PQputCopyData(session.raw(), "3\t30\n", 5);
        ::PQputCopyEnd(session.raw(), nullptr);
        const auto told = session.finish();
        session.ask("COMMIT");
        return told;
    };
    EXPECT_TRUE(is_error(copy("SELECT 1"), "ZD002"));
    EXPECT_EQ(copy("SELECT dibs.fence('k', 5)"), "1");
    EXPECT_EQ(rows(), "1|10|\n2|20|\n3|30|5");
}

TEST_F(Fence, TruncateAsksForTheNewestFenceOfAll) {
    EXPECT_EQ(write(5, "UPDATE product SET stock = 9 WHERE id = 2"), "1");
    EXPECT_TRUE(is_error(write(4, "TRUNCATE product"), "ZD001"));
    EXPECT_EQ(write(5, "TRUNCATE product"), "");
    EXPECT_EQ(rows(), "");
}

TEST_F(Fence, AViewIsNoWayAround) {
    ASSERT_EQ(server_.ask("CREATE VIEW shelf AS SELECT id, stock FROM product"), "");
    EXPECT_EQ(write(5, "UPDATE shelf SET stock = 9"), "2");
    EXPECT_TRUE(is_error(write(4, "UPDATE shelf SET stock = 1"), "ZD001"));
    EXPECT_TRUE(is_error(server_.ask("SELECT dibs.protect('shelf')"), "42809"));
}

TEST_F(Fence, PartitionsOldAndNewAreProtectedToo) {
    ASSERT_EQ(server_.ask("CREATE TABLE sale(id int, day int) PARTITION BY RANGE (day);"
                          "CREATE TABLE sale_1 PARTITION OF sale FOR VALUES FROM (0) TO (10);"
                          "SELECT dibs.protect('sale');"
                          "CREATE TABLE sale_2 PARTITION OF sale FOR VALUES FROM (10) TO (20)"),
              "");
    EXPECT_EQ(write(5, "INSERT INTO sale VALUES(1, 1), (2, 11)"), "2");
    EXPECT_TRUE(is_error(write(4, "UPDATE sale SET id = 3 WHERE day = 11"), "ZD001"));
    EXPECT_TRUE(is_error(write(4, "UPDATE sale_2 SET id = 3"), "ZD001"));
    EXPECT_TRUE(is_error(write(4, "UPDATE sale SET day = 12 WHERE day = 1"), "ZD001"));
    EXPECT_EQ(write(6, "UPDATE sale SET day = 12 WHERE day = 1"), "1");
    EXPECT_EQ(write(4, "TRUNCATE sale_1"), "") << "nothing is in it";
    EXPECT_TRUE(is_error(write(4, "TRUNCATE sale"), "ZD001"));
    EXPECT_EQ(server_.ask("SELECT id, day, fence FROM sale ORDER BY id"), "1|12|6\n2|11|5");
    EXPECT_TRUE(is_error(server_.ask("SELECT dibs.protect('sale_1')"), "42809"));
    EXPECT_EQ(server_.ask("SELECT count(*) FROM dibs.guard_report() WHERE relation LIKE '%sale%'"),
              "1");
}

TEST_F(Fence, OtherTriggersHaveNotTheLastWord) {
    ASSERT_EQ(server_.ask("CREATE FUNCTION lower_it() RETURNS trigger LANGUAGE plpgsql AS "
                          "'BEGIN NEW.fence := 1; RETURN NEW; END';"
                          "CREATE TRIGGER zz_mine BEFORE UPDATE ON product FOR EACH ROW "
                          "EXECUTE FUNCTION lower_it()"),
              "");
    EXPECT_EQ(write(5, "UPDATE product SET stock = 9"), "2");
    EXPECT_EQ(rows(), "1|9|5\n2|9|5");
}

TEST_F(Fence, OnlyAReplicaOrASuperuserGetsAround) {
    EXPECT_EQ(write(5, "UPDATE product SET stock = 9"), "2");
    ASSERT_EQ(server_.ask("CREATE ROLE app LOGIN; GRANT ALL ON product TO app"), "");
    auto app = server_.connect("postgres", "app");
    EXPECT_TRUE(is_error(app.ask("SET session_replication_role = replica"), "42501"));
    EXPECT_TRUE(is_error(app.ask("ALTER TABLE product DISABLE TRIGGER ALL"), "42501"));
    EXPECT_TRUE(is_error(app.ask("UPDATE product SET stock = 0"), "ZD002"));
    // As the apply worker of a subscription does: what it brings was checked where it comes from.
    EXPECT_EQ(server_.ask("SET session_replication_role = replica; UPDATE product SET stock = 0"),
              "2");
}

TEST_F(Fence, ASessionsSearchPathChangesNothing) {
    auto session = server_.connect();
    // Operators and functions that let everybody in, found first.
    ASSERT_EQ(session.ask("CREATE SCHEMA trap;"
                          "CREATE FUNCTION trap.no(bigint, bigint) RETURNS boolean LANGUAGE sql "
                          "AS 'SELECT false';"
                          "CREATE OPERATOR trap.> (FUNCTION = trap.no, LEFTARG = bigint, "
                          "RIGHTARG = bigint);"
                          "CREATE FUNCTION trap.current_setting(text, boolean) RETURNS text "
                          "LANGUAGE sql AS $$SELECT '99'$$;"
                          "SET search_path = trap, pg_catalog, public"),
              "");
    session.ask("BEGIN; SELECT dibs.fence('k', 5)");
    EXPECT_EQ(session.ask("UPDATE product SET stock = 9"), "2");
    session.ask("COMMIT; BEGIN; SELECT dibs.fence('k', 4)");
    EXPECT_TRUE(is_error(session.ask("UPDATE product SET stock = 1"), "ZD001"));
    session.ask("ROLLBACK; BEGIN");
    EXPECT_TRUE(is_error(session.ask("UPDATE product SET stock = 1"), "ZD002"));
}

TEST_F(Fence, SeveralKeysNeedATableThatKnowsThem) {
    auto session = server_.connect();
    session.ask("BEGIN; SELECT dibs.fence('product:1', 5); SELECT dibs.fence('product:2', 3)");
    EXPECT_TRUE(is_error(session.ask("UPDATE product SET stock = 1 WHERE id = 1"), "ZD002"));
    session.ask("ROLLBACK");
    ASSERT_EQ(server_.ask("SELECT dibs.protect('product', 'product:{id}')"), "");
    session.ask("BEGIN; SELECT dibs.fence('product:1', 5); SELECT dibs.fence('product:2', 3)");
    EXPECT_EQ(session.ask("UPDATE product SET stock = 1"), "2");
    EXPECT_TRUE(is_error(session.ask("INSERT INTO product VALUES(3, 1)"), "ZD002"));
    EXPECT_EQ(session.detail(), R"({"key": "product:3", "table": "public.product"})");
    session.ask(
        "ROLLBACK; BEGIN; SELECT dibs.fence('product:1', 5); SELECT dibs.fence('product:2', 3)");
    EXPECT_EQ(session.ask("UPDATE product SET stock = 1"), "2");
    session.ask("COMMIT");
    EXPECT_EQ(rows(), "1|1|5\n2|1|3");
    EXPECT_TRUE(is_error(
        server_.ask("UPDATE product SET stock = 0 FROM dibs.fence('product:1', 4) WHERE id = 1"),
        "ZD001"));
    // A row that moves to another key needs the fence of both.
    EXPECT_TRUE(is_error(
        server_.ask("UPDATE product SET id = 7 FROM dibs.fence('product:1', 5) WHERE id = 1"),
        "ZD002"));
    EXPECT_TRUE(is_error(server_.ask("SELECT dibs.protect('product', 'x:{nothing}')"), "42703"));
}

TEST_F(Fence, UnprotectTakesItBack) {
    EXPECT_EQ(write(5, "UPDATE product SET stock = 9"), "2");
    EXPECT_EQ(server_.ask("SELECT dibs.unprotect('product')"), "");
    EXPECT_EQ(server_.ask("UPDATE product SET stock = 8"), "2");
    EXPECT_EQ(rows(), "1|8|5\n2|8|5");
    EXPECT_EQ(server_.refused("public.product"), "");
    EXPECT_EQ(server_.ask("SELECT dibs.protect('product')"), "");
    EXPECT_TRUE(is_error(write(4, "UPDATE product SET stock = 1"), "ZD001"));
    EXPECT_EQ(server_.ask("SELECT dibs.unprotect('product', drop_column => true); "
                          "SELECT * FROM product ORDER BY id"),
              "1|8\n2|8");
    EXPECT_EQ(server_.ask("SELECT count(*) FROM pg_class WHERE relname LIKE 'dibs\\_refused\\_%'"),
              "0");
}

TEST_F(Fence, AWriterWaitsForTheRowAndIsThenJudgedByWhatIsThere) {
    auto newer = server_.connect();
    auto older = server_.connect();
    newer.ask("BEGIN; SELECT dibs.fence('k', 6)");
    ASSERT_EQ(newer.ask("UPDATE product SET stock = 9 WHERE id = 1"), "1");
    older.ask("BEGIN; SELECT dibs.fence('k', 5)");
    older.send("UPDATE product SET stock = 1 WHERE id = 1");
    ASSERT_TRUE(eventually([&] { return server_.has_waiting_session(); }));
    EXPECT_EQ(newer.ask("COMMIT"), "");
    EXPECT_TRUE(is_error(older.finish(), "ZD001"));
}

TEST_F(Fence, AWriterIsLetInWhenTheNewerOneIsRolledBack) {
    auto newer = server_.connect();
    auto older = server_.connect();
    newer.ask("BEGIN; SELECT dibs.fence('k', 6)");
    ASSERT_EQ(newer.ask("UPDATE product SET stock = 9 WHERE id = 1"), "1");
    older.ask("BEGIN; SELECT dibs.fence('k', 5)");
    older.send("UPDATE product SET stock = 1 WHERE id = 1");
    ASSERT_TRUE(eventually([&] { return server_.has_waiting_session(); }));
    EXPECT_EQ(newer.ask("ROLLBACK"), "");
    EXPECT_EQ(older.finish(), "1");
    older.ask("COMMIT");
    EXPECT_EQ(rows(), "1|1|5\n2|20|");
}

// F0: the one who is late must be refused although the newer holder only read so far.
TEST_F(Fence, WhoeverClaimsBeforeReadingIsNotOverwritten) {
    auto late = server_.connect();
    auto newer = server_.connect();
    newer.ask("BEGIN");
    EXPECT_EQ(newer.ask("SELECT dibs.claim('k', 6)"), "6");
    EXPECT_EQ(newer.ask("SELECT stock FROM product WHERE id = 1"), "10");
    late.ask("BEGIN");
    late.send("SELECT dibs.claim('k', 5)");
    ASSERT_TRUE(eventually([&] { return server_.has_waiting_session(); }));
    EXPECT_EQ(newer.ask("UPDATE product SET stock = 7 WHERE id = 1"), "1");
    newer.ask("COMMIT");
    EXPECT_TRUE(is_error(late.finish(), "ZD001"));
    EXPECT_EQ(late.detail(), R"({"key": "k", "fence": 5, "table": null, "newest": 6})");
    late.ask("ROLLBACK");
    EXPECT_EQ(server_.refused_claims(), "1");
    EXPECT_EQ(server_.ask("SELECT dibs.claim('k', 6)"), "6");

    // A row that is gone has no fence, but its key has.
    EXPECT_EQ(server_.ask("DELETE FROM product USING dibs.claim('k', 7) WHERE id = 1"), "1");
    EXPECT_TRUE(
        is_error(server_.ask("INSERT INTO product SELECT 1, 10 FROM dibs.claim('k', 6)"), "ZD001"));
}

TEST_F(Fence, AClaimThatIsRolledBackCountsForNothing) {
    auto session = server_.connect();
    session.ask("BEGIN; SELECT dibs.claim('k', 9)");
    session.ask("ROLLBACK");
    EXPECT_EQ(server_.ask("SELECT dibs.claim('k', 5)"), "5");
}

TEST_F(Fence, AClaimIsForWhomAllowSays) {
    ASSERT_EQ(server_.ask("CREATE ROLE app LOGIN"), "");
    auto app = server_.connect("postgres", "app");
    EXPECT_TRUE(is_error(app.ask("SELECT dibs.claim('k', 5)"), "42501"));
    EXPECT_EQ(server_.ask("SELECT dibs.allow('app')"), "");
    EXPECT_EQ(app.ask("SELECT dibs.claim('k', 5)"), "5");
    EXPECT_TRUE(is_error(app.ask("UPDATE dibs.guard_key SET fence = 1"), "42501"));
    EXPECT_TRUE(is_error(app.ask("SELECT dibs.claim('k', 4)"), "ZD001"));
    EXPECT_EQ(server_.refused_claims(), "1");
    EXPECT_TRUE(is_error(app.ask("CREATE TABLE own(id int); SELECT dibs.protect('own')"), "42501"));
}

TEST_F(Fence, NonsenseIsRefused) {
    for (const char* call : {"SELECT dibs.fence('', 5)",
                             "SELECT dibs.fence('k', 0)",
                             "SELECT dibs.fence('k', -1)",
                             "SELECT dibs.fence(NULL, 5)",
                             "SELECT dibs.claim('k', NULL)",
                             "SELECT dibs.claim(repeat('k', 1025), 5)",
                             "SELECT dibs.protect('product', '')",
                             "SELECT dibs.protect('product', 'product:{id')",
                             "SELECT dibs.protect('product', 'product:{id}{')",
                             "SELECT dibs.protect('product', unfenced => 'perhaps')"}) {
        EXPECT_TRUE(is_error(server_.ask(call), "22023")) << call;
    }
    EXPECT_TRUE(is_error(server_.ask("SELECT dibs.protect(NULL)"), "22004"));
    EXPECT_TRUE(is_error(server_.ask("BEGIN; SELECT dibs.fence('k', 5); SELECT dibs.fence('k', 4)"),
                         "ZD001"));
    EXPECT_TRUE(
        is_error(server_.ask("CREATE TABLE odd(fence text); SELECT dibs.protect('odd')"), "42804"));
    for (const char* column : {"bigint GENERATED ALWAYS AS (1) STORED",
                               "bigint GENERATED ALWAYS AS IDENTITY",
                               "bigint GENERATED BY DEFAULT AS IDENTITY"}) {
        EXPECT_TRUE(is_error(server_.ask("CREATE TABLE odd(id int, fence " + std::string{column} +
                                         "); SELECT dibs.protect('odd')"),
                             "42804"))
            << column;
    }
    // Whoever gives no fence leaves none.
    ASSERT_EQ(server_.ask("CREATE TABLE full_one(id int, fence bigint NOT NULL)"), "");
    EXPECT_TRUE(
        is_error(server_.ask("SELECT dibs.protect('full_one', unfenced => 'allow')"), "42804"));
    EXPECT_EQ(server_.ask("SELECT dibs.protect('full_one')"), "");
    EXPECT_EQ(write(5, "INSERT INTO full_one VALUES(1)"), "1");
}

TEST_F(Fence, AWaitMayBeAsLongAsAnybodyLikes) {
    EXPECT_EQ(server_.ask("SELECT dibs.claim('k', 5, '100 days')"), "5");
    EXPECT_EQ(
        server_.ask("SELECT dibs.lock_row('product', '{\"id\": 1}', '100 years') ->> 'stock'"),
        "10");
    EXPECT_EQ(server_.ask("SELECT dibs.xact_lock('k', '100 days')"), "t");
}

TEST_F(Fence, OutlivesAServerThatIsKilled) {
    EXPECT_EQ(write(5, "UPDATE product SET stock = 9 WHERE id = 1"), "1");
    EXPECT_EQ(server_.ask("SELECT dibs.claim('k', 5)"), "5");
    auto newer = server_.connect();
    newer.ask("BEGIN; SELECT dibs.claim('k', 8)");
    ASSERT_EQ(newer.ask("UPDATE product SET stock = 1 WHERE id = 1"), "1");
    server_.kill();
    ASSERT_TRUE(server_.start()) << server_.log();
    EXPECT_EQ(rows(), "1|9|5\n2|20|");
    EXPECT_TRUE(is_error(write(4, "UPDATE product SET stock = 1 WHERE id = 1"), "ZD001"));
    EXPECT_TRUE(is_error(server_.ask("SELECT dibs.claim('k', 4)"), "ZD001"));
    EXPECT_EQ(server_.ask("SELECT dibs.claim('k', 6)"), "6");
}

class FencePrepared : public Fence {
  protected:
    FencePrepared() : Fence({"max_prepared_transactions=2"}) {}
};

TEST_F(FencePrepared, ATransactionInTwoPhasesKeepsOthersAwayUntilItsEnd) {
    auto first = server_.connect();
    first.ask("BEGIN; SELECT dibs.claim('k', 5)");
    ASSERT_EQ(first.ask("UPDATE product SET stock = 9 WHERE id = 1"), "1");
    ASSERT_EQ(first.ask("PREPARE TRANSACTION 'one'"), "");
    auto newer = server_.connect();
    newer.ask("BEGIN");
    newer.send("SELECT dibs.claim('k', 6)");
    ASSERT_TRUE(eventually([&] { return server_.has_waiting_session(); }));
    server_.ask("COMMIT PREPARED 'one'");
    EXPECT_EQ(newer.finish(), "6");
    EXPECT_EQ(newer.ask("SELECT stock FROM product WHERE id = 1"), "9");
    newer.ask("COMMIT");
    EXPECT_EQ(write(5, "UPDATE product SET stock = 1 WHERE id = 1"), "1")
        << "fence() alone goes by the rows";
}

// CASE 126 of the catalogue: writers at random.
TEST_F(Fence, AcceptedFencesNeverFallWhateverTheOrder) {
    ASSERT_EQ(server_.ask("CREATE TABLE history(n bigserial, fence bigint);"
                          "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS "
                          "'BEGIN INSERT INTO history(fence) VALUES(NEW.fence); RETURN NULL; END';"
                          "CREATE TRIGGER note AFTER UPDATE ON product FOR EACH ROW "
                          "EXECUTE FUNCTION note()"),
              "");
    const int writers = 4;
    std::vector<postgres_session> sessions;
    for (int writer = 0; writer < writers; ++writer) {
        sessions.push_back(server_.connect());
        // Each as fast as it can, on the same row, with fences up and down.
        sessions.back().send(
            "DO $$ DECLARE f bigint; BEGIN FOR i IN 1..500 LOOP "
            "f := i + (random() * 40)::int; BEGIN PERFORM dibs.fence('w" +
            std::to_string(writer) +
            "', f); UPDATE product SET stock = stock + 1 WHERE id = 1; "
            "EXCEPTION WHEN SQLSTATE 'ZD001' THEN NULL; END; COMMIT; END LOOP; END $$");
    }
    for (auto& session : sessions) {
        EXPECT_EQ(session.finish(), "");
    }
    EXPECT_EQ(
        server_.ask("SELECT count(*) FROM (SELECT fence < lag(fence) OVER (ORDER BY n) AS fell "
                    "FROM history) h WHERE fell"),
        "0");
    EXPECT_EQ(server_.ask("SELECT count(*) > 40 FROM history"), "t");
    EXPECT_NE(server_.refused("public.product"), "0");
}

TEST_F(Fence, AClaimThatWaitedWithAnOldSnapshotIsRefused) {
    ASSERT_EQ(server_.ask("SELECT dibs.claim('k', 33)"), "33");
    auto first = server_.connect();
    first.ask("BEGIN");
    // Once more, so that the row's fence does not change.
    EXPECT_EQ(first.ask("SELECT dibs.claim('k', 33)"), "33");
    auto second = server_.connect();
    second.ask("BEGIN ISOLATION LEVEL REPEATABLE READ");
    second.send("SELECT dibs.claim('k', 34)");
    ASSERT_TRUE(eventually([&] { return server_.has_waiting_session(); }));
    EXPECT_EQ(first.ask("UPDATE product SET stock = 7 WHERE id = 1"), "1");
    first.ask("COMMIT");
    EXPECT_TRUE(is_error(second.finish(), "40001"));
    second.ask("ROLLBACK; BEGIN ISOLATION LEVEL REPEATABLE READ");
    EXPECT_EQ(second.ask("SELECT dibs.claim('k', 34)"), "34");
    EXPECT_EQ(second.ask("SELECT stock FROM product WHERE id = 1"), "7");
}

TEST_F(Fence, TruncateWithAnOldSnapshotIsRefused) {
    auto late = server_.connect();
    late.ask("BEGIN ISOLATION LEVEL REPEATABLE READ");
    late.ask("SELECT count(*) FROM pg_class");
    EXPECT_EQ(write(34, "UPDATE product SET stock = 1"), "2");
    EXPECT_EQ(late.ask("SELECT dibs.fence('k', 33)"), "33");
    EXPECT_TRUE(is_error(late.ask("TRUNCATE product"), "0A000"));
    late.ask("ROLLBACK");
    EXPECT_EQ(rows(), "1|1|34\n2|1|34");
}

TEST_F(Fence, TruncateByWhomRowsAreHiddenFromIsRefused) {
    EXPECT_EQ(write(34, "UPDATE product SET stock = 1 WHERE id = 1"), "1");
    EXPECT_EQ(write(33, "UPDATE product SET stock = 1 WHERE id = 2"), "1");
    ASSERT_EQ(server_.ask("CREATE ROLE app LOGIN; GRANT ALL ON product TO app;"
                          "ALTER TABLE product ENABLE ROW LEVEL SECURITY;"
                          "CREATE POLICY own ON product USING (id = 2)"),
              "");
    auto late = server_.connect("postgres", "app");
    late.ask("BEGIN");
    EXPECT_EQ(late.ask("SELECT dibs.fence('k', 33)"), "33");
    EXPECT_EQ(late.ask("SELECT max(fence) FROM product"), "33") << "the newer one is hidden";
    EXPECT_TRUE(is_error(late.ask("TRUNCATE product"), "42501"));
    late.ask("ROLLBACK");
    EXPECT_EQ(rows(), "1|1|34\n2|1|33");
    ASSERT_EQ(server_.ask("ALTER ROLE app BYPASSRLS"), "");
    auto seeing = server_.connect("postgres", "app");
    seeing.ask("BEGIN; SELECT dibs.fence('k', 34)");
    EXPECT_EQ(seeing.ask("TRUNCATE product"), "");
}

// It has no value yet when the row is checked: each update would look like one that moves the row to another
// key, which forgets the fence where writes without one are allowed.
TEST_F(Fence, AKeyOfAGeneratedColumnIsRefused) {
    ASSERT_EQ(
        server_.ask("CREATE TABLE seat(id int, name text GENERATED ALWAYS AS ('x' || id) STORED)"),
        "");
    for (const std::string unfenced : {"refuse", "allow"}) {
        EXPECT_TRUE(is_error(
            server_.ask("SELECT dibs.protect('seat', 'seat:{id}:{name}', '" + unfenced + "')"),
            "0A000"));
    }
    EXPECT_EQ(server_.ask("SELECT dibs.protect('seat', 'seat:{id}')"), "");
}

TEST_F(Fence, AColumnOfTheKeyThatHasGoneIsTold) {
    const std::string gaps = "SELECT * FROM dibs.guard_gaps()";
    ASSERT_EQ(server_.ask("SELECT dibs.protect('product', 'product:{id}', 'allow')"), "");
    EXPECT_EQ(server_.ask(gaps), "");
    ASSERT_EQ(server_.ask("ALTER TABLE product RENAME COLUMN id TO number"), "");
    EXPECT_EQ(server_.ask(gaps), "public.product|public.product|writes");
    ASSERT_EQ(server_.ask("SELECT dibs.protect('product', 'product:{number}', 'allow')"), "");
    EXPECT_EQ(server_.ask(gaps), "");
}

// A write by the parent's name reaches them, and no trigger of the parent.
TEST_F(Fence, ChildrenByInheritanceThatAreOpenAreTold) {
    ASSERT_EQ(server_.ask("CREATE TABLE sale(id int, day int);"
                          "CREATE TABLE sale_old(why text) INHERITS (sale);"
                          "CREATE TABLE sale_older() INHERITS (sale_old);"
                          "INSERT INTO sale_older VALUES (1, 1, 'late');"
                          "SELECT dibs.protect('sale')"),
              "");
    const std::string enabled =
        "SELECT enabled FROM dibs.guard_report() WHERE relation = 'public.sale'";
    const std::string gaps = "SELECT * FROM dibs.guard_gaps()";
    EXPECT_EQ(server_.ask("UPDATE sale SET day = 2"), "1") << "each is a table of its own";
    EXPECT_EQ(server_.ask(gaps),
              "public.sale|public.sale_old|writes\npublic.sale|public.sale_older|writes");
    EXPECT_EQ(server_.ask(enabled), "f");
    ASSERT_EQ(server_.ask("SELECT dibs.protect('sale_old'), dibs.protect('sale_older')"), "|");
    EXPECT_EQ(server_.ask(gaps), "");
    EXPECT_EQ(server_.ask(enabled), "t");
    EXPECT_TRUE(is_error(server_.ask("UPDATE sale SET day = 3"), "ZD002"));
    EXPECT_EQ(server_.ask("SELECT dibs.unprotect('sale')"), "");
}

TEST_F(Fence, APartitionThatWasDetachedIsTold) {
    ASSERT_EQ(server_.ask("CREATE TABLE sale(id int, day int) PARTITION BY RANGE (day);"
                          "CREATE TABLE sale_1 PARTITION OF sale FOR VALUES FROM (0) TO (10);"
                          "SELECT dibs.protect('sale');"
                          "ALTER TABLE sale DETACH PARTITION sale_1"),
              "");
    const std::string gaps = "SELECT * FROM dibs.guard_gaps()";
    EXPECT_EQ(server_.ask("INSERT INTO sale_1 VALUES (1, 1)"), "1") << "it is a table of its own";
    EXPECT_EQ(server_.ask(gaps), "public.sale_1|public.sale_1|writes");
    ASSERT_EQ(server_.ask("SELECT dibs.protect('sale_1')"), "");
    EXPECT_EQ(server_.ask(gaps), "");
    EXPECT_TRUE(is_error(server_.ask("DELETE FROM sale_1"), "ZD002"));
    ASSERT_EQ(server_.ask("SELECT dibs.unprotect('sale_1')"), "");
    EXPECT_EQ(server_.ask(gaps), "");
}

TEST_F(Fence, AForeignPartitionIsNotProtectedByHalf) {
    ASSERT_EQ(server_.ask("CREATE FOREIGN DATA WRAPPER nothing; CREATE SERVER far FOREIGN DATA "
                          "WRAPPER nothing;"
                          "CREATE TABLE sale(id int, day int) PARTITION BY RANGE (day);"
                          "CREATE FOREIGN TABLE sale_1 PARTITION OF sale FOR VALUES FROM (0) TO "
                          "(10) SERVER far"),
              "");
    EXPECT_TRUE(is_error(server_.ask("SELECT dibs.protect('sale')"), "42809"));
    EXPECT_EQ(server_.ask("SELECT count(*) FROM pg_attribute WHERE attrelid = 'sale'::regclass AND "
                          "attname = 'fence'"),
              "0");
}

TEST_F(Fence, UnprotectDropsNoColumnOfATableThatWasNotProtected) {
    ASSERT_EQ(
        server_.ask("CREATE TABLE other(id int, fence bigint); INSERT INTO other VALUES(1, 7)"),
        "1");
    EXPECT_TRUE(
        is_error(server_.ask("SELECT dibs.unprotect('other', drop_column => true)"), "55000"));
    EXPECT_EQ(server_.ask("SELECT fence FROM other"), "7");
    EXPECT_EQ(server_.ask("SELECT dibs.unprotect('other')"), "");
}

}  // namespace
}  // namespace dibs::testing
