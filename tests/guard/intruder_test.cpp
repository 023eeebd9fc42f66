// SPDX-License-Identifier: Apache-2.0
// Goal: nobody gets the rights of others through the data layer or the store's functions. Method: a
// role that may do no more than it needs, or a little more, offers functions of its own.
#include "guard/script.hpp"
#include "guarded_server.hpp"
#include "store/postgres/statements.hpp"

#include <dibs/dibs.hpp>
#include <dibs/postgres.hpp>

#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

namespace dibs::testing {
namespace {

using namespace std::chrono_literals;

/// `mig`, who owns tables; `app`, who writes.
class Intruder : public ::testing::Test {
  protected:
    Intruder() {
        EXPECT_EQ(server_.ask("CREATE ROLE mig LOGIN; CREATE ROLE app LOGIN;"
                              "GRANT CREATE ON SCHEMA public TO mig;"
                              "GRANT mig TO app"),
                  "");
    }

    /// As `mig`, who may create in the schema: for each function there whose name is like `names`,
    /// others that differ in one type; all of them fail as ZZ999.
    void offer_decoys(const std::string& names) {
        ASSERT_EQ(server_.ask("GRANT CREATE ON SCHEMA dibs TO mig"), "");
        auto session = server_.connect("postgres", "mig");
        ASSERT_EQ(session.ask(R"(DO $$
DECLARE p record; types text[]; at int; other text; made int := 0;
BEGIN
    FOR p IN SELECT proname, proargtypes::oid[]::regtype[]::text[] AS args FROM pg_proc
             WHERE pronamespace = 'dibs'::regnamespace AND proname LIKE ')" +
                              names + R"(' AND prorettype <> 'trigger'::regtype LOOP
        FOR at IN 1..coalesce(array_length(p.args, 1), 0) LOOP
            FOREACH other IN ARRAY '{text,varchar,oid,int4,int8,float8,numeric,name,regclass,jsonb,interval,
                                     text[],int4[],int8[],numeric[],anyelement}'::text[] LOOP
                types := p.args;
                types[array_lower(types, 1) + at - 1] := other;
                BEGIN
                    EXECUTE format('CREATE FUNCTION dibs.%I(%s) RETURNS text LANGUAGE plpgsql AS '
                                   '%L', p.proname, array_to_string(types, ','),
                                   'BEGIN RAISE EXCEPTION USING ERRCODE = ''ZZ999''; END');
                    made := made + 1;
                EXCEPTION WHEN duplicate_function THEN NULL;
                END;
            END LOOP;
        END LOOP;
    END LOOP;
    IF made < 10 THEN RAISE EXCEPTION 'only % made', made; END IF;
END $$)"),
                  "");
    }

    guarded_server server_;
};

constexpr const char* decoy =
    "CREATE FUNCTION dibs.refuse_stale(text, text, bigint, bigint, text) "
    "RETURNS void LANGUAGE sql AS 'ALTER ROLE mig SUPERUSER'";

TEST_F(Intruder, WhoProtectsTablesMakesNothingInTheSchema) {
    EXPECT_EQ(server_.ask("SELECT dibs.allow('mig', protects => true)"), "");
    auto mig = server_.connect("postgres", "mig");
    ASSERT_EQ(mig.ask("CREATE TABLE t(id int); SELECT dibs.protect('t')"), "");
    EXPECT_TRUE(is_error(mig.ask(decoy), "42501"));
    EXPECT_EQ(mig.ask("INSERT INTO t SELECT 1 FROM dibs.fence('t', 7)"), "1");
    EXPECT_TRUE(is_error(mig.ask("UPDATE t SET id = 2 FROM dibs.fence('t', 6)"), "ZD001"));
    EXPECT_EQ(server_.refused("public.t"), "1");
    EXPECT_TRUE(is_error(mig.ask("SELECT dibs.allow('app')"), "42501"));
    // What counts is the table's, and goes with it.
    EXPECT_EQ(mig.ask("DROP TABLE t"), "");
    EXPECT_EQ(server_.ask("SELECT count(*) FROM pg_class WHERE relkind = 'S' AND relnamespace <> "
                          "'dibs'::regnamespace"),
              "0");
}

TEST_F(Intruder, AnUpgradeTakesBackWhatEarlierReleasesGave) {
    ASSERT_EQ(server_.ask(as_of_before_version_3), "");
    ASSERT_EQ(server_.ask("UPDATE dibs.guard_version SET version = 1;"
                          "GRANT CREATE ON SCHEMA dibs TO mig WITH GRANT OPTION"),
              "");
    // As version 1 protected: the counter is in the schema, and belongs to who protected.
    auto mig = server_.connect("postgres", "mig");
    ASSERT_EQ(
        mig.ask("GRANT CREATE ON SCHEMA dibs TO app; CREATE TABLE t(id int, fence bigint);"
                "INSERT INTO t VALUES(1, 7); CREATE SEQUENCE dibs.\"refused_0123abcd-4567\";"
                "GRANT USAGE, SELECT ON SEQUENCE dibs.\"refused_0123abcd-4567\" TO PUBLIC;"
                "CREATE TRIGGER zzz_dibs_fence BEFORE INSERT OR UPDATE OR DELETE ON t FOR EACH "
                "ROW EXECUTE FUNCTION "
                "dibs.check_fence('dibs.\"refused_0123abcd-4567\"', 'refuse')"),
        "");
    guard::install(server_.url(), "dibs");
    for (const char* role : {"mig", "app"}) {
        EXPECT_TRUE(is_error(server_.connect("postgres", role).ask(decoy), "42501")) << role;
    }
    EXPECT_TRUE(is_error(mig.ask("UPDATE t SET id = 2 FROM dibs.fence('t', 6)"), "ZD001"));
    EXPECT_EQ(server_.refused("public.t"), "1");
    EXPECT_EQ(mig.ask("SELECT dibs.protect('t', unfenced => 'allow')"), "");
    EXPECT_EQ(server_.refused("public.t"), "1");
    EXPECT_EQ(mig.ask("SELECT dibs.unprotect('t')"), "");
    EXPECT_EQ(server_.ask("SELECT to_regclass('dibs.\"refused_0123abcd-4567\"')"), "");
}

TEST_F(Intruder, AnInstallationStopsAtWhatOthersLeftUnderItsNames) {
    ASSERT_EQ(server_.ask("GRANT CREATE ON SCHEMA dibs TO mig"), "");
    ASSERT_EQ(server_.connect("postgres", "mig").ask(decoy), "");
    auto admin = server_.connect();
    const auto told = admin.ask(guard::script("dibs"));
    EXPECT_TRUE(is_error(told, "42501")) << told;
    EXPECT_NE(told.find("refuse_stale(text,text,bigint,bigint,text)"), std::string::npos) << told;
    ASSERT_EQ(server_.ask("DROP FUNCTION dibs.refuse_stale(text, text, bigint, bigint, text)"), "");
    EXPECT_EQ(server_.connect().ask(guard::script("dibs")), "");
    ASSERT_EQ(server_.ask("CREATE SCHEMA open; GRANT CREATE ON SCHEMA open TO PUBLIC"), "");
    EXPECT_TRUE(is_error(server_.connect().ask(guard::script("open")), "42P15"));
}

TEST_F(Intruder, TheSchemasOwnerGetsNoMoreRightsByASuperusersInstallation) {
    ASSERT_EQ(server_.ask("CREATE SCHEMA theirs AUTHORIZATION app"), "");
    ASSERT_EQ(server_.connect().ask(guard::script("theirs")), "");
    EXPECT_EQ(
        server_.ask("SELECT count(*) FROM pg_proc WHERE pronamespace = 'theirs'::regnamespace "
                    "AND proowner <> 'app'::regrole"),
        "0");
    EXPECT_EQ(server_.ask("SELECT count(*) FROM pg_class WHERE relnamespace = "
                          "'theirs'::regnamespace AND relowner <> 'app'::regrole"),
              "0");
    EXPECT_EQ(server_.connect("postgres", "app").ask("SELECT theirs.claim('k', 7)"), "7");
    EXPECT_TRUE(
        is_error(server_.connect("postgres", "mig").ask("SELECT theirs.claim('k', 8)"), "42501"));
    // Nor does somebody else install into it.
    EXPECT_TRUE(is_error(server_.connect("postgres", "mig").ask(guard::script("theirs")), "42501"));
}

TEST_F(Intruder, ATriggerThatIsNotOursBreaksNobodysReport) {
    ASSERT_EQ(server_.ask("CREATE TABLE t(id int); SELECT dibs.protect('t')"), "");
    for (const char* named :
         {"a.b.c.d.e", "\"", "dibs.\"refused_0123abcd-4567", "dibs.lease", ""}) {
        auto mig = server_.connect("postgres", "mig");
        ASSERT_EQ(
            mig.ask("CREATE TABLE IF NOT EXISTS theirs(id int, fence bigint);"
                    "DROP TRIGGER IF EXISTS zzz_dibs_fence ON theirs;"
                    "CREATE TRIGGER zzz_dibs_fence BEFORE INSERT ON theirs FOR EACH ROW EXECUTE "
                    "FUNCTION dibs.check_fence('" +
                    std::string{named} + "', 'refuse')"),
            "");
        EXPECT_EQ(server_.refused("public.t"), "0") << named;
        EXPECT_EQ(server_.refused("public.theirs"), "0") << named;
        EXPECT_TRUE(is_error(mig.ask("INSERT INTO theirs VALUES(1)"), "ZD002")) << named;
    }
}

// The second wall: even in a schema that is open, no call of ours picks another function.
TEST_F(Intruder, FunctionsOfTheSameNameAreNeverTakenForOurs) {
    ASSERT_EQ(server_.ask("CREATE TABLE t(id int, stock int); INSERT INTO t VALUES(1, 10);"
                          "CREATE TABLE k(id int, stock int); INSERT INTO k VALUES(1, 10);"
                          "CREATE TABLE v(id int, stock int); INSERT INTO v VALUES(1, 10);"
                          "SELECT dibs.protect('t'); SELECT dibs.protect('k', 'k:{id}');"
                          "SELECT dibs.versioned('v')"),
              "");
    offer_decoys("%");
    const std::string fence = "SELECT dibs.fence('k:1'::text, ";
    EXPECT_EQ(server_.ask("SELECT dibs.claim('c'::text, 7::bigint, NULL::interval)"), "7");
    EXPECT_TRUE(
        is_error(server_.ask("SELECT dibs.claim('c'::text, 6::bigint, NULL::interval)"), "ZD001"));
    EXPECT_TRUE(
        is_error(server_.ask("BEGIN; " + fence + "7::bigint); " + fence + "6::bigint)"), "ZD001"));
    for (const std::string table : {"t", "k"}) {
        EXPECT_EQ(server_.ask("BEGIN; " + fence + "7::bigint); UPDATE " + table +
                              " SET stock = 9; COMMIT"),
                  "");
        for (const auto& write : std::vector<std::string>{"UPDATE " + table + " SET stock = 8",
                                                          "DELETE FROM " + table,
                                                          "TRUNCATE " + table}) {
            EXPECT_TRUE(is_error(server_.ask("BEGIN; " + fence + "6::bigint); " + write), "ZD001"))
                << write;
            EXPECT_TRUE(is_error(server_.ask(write), "ZD002")) << write;
        }
        EXPECT_EQ(server_.refused("public." + table), "6");
    }
    EXPECT_TRUE(is_error(server_.ask("BEGIN; " + fence +
                                     "7::bigint); "
                                     "SELECT dibs.fence('other'::text, 7::bigint); "
                                     "UPDATE t SET stock = 1"),
                         "ZD002"));
    EXPECT_TRUE(is_error(server_.ask("UPDATE v SET version = 9"), "ZD003"));
    const std::string row = "('v'::regclass, '{\"id\": 1}'::jsonb, ";
    EXPECT_EQ(
        server_.ask("SELECT dibs.update_versioned" + row + "1::bigint, '{\"stock\": 5}'::jsonb)"),
        "2");
    EXPECT_TRUE(is_error(
        server_.ask("SELECT dibs.update_versioned" + row + "1::bigint, '{\"stock\": 5}'::jsonb)"),
        "ZD003"));
    EXPECT_TRUE(is_error(server_.ask("SELECT dibs.update_versioned('v'::regclass, '{\"id\": "
                                     "2}'::jsonb, 1::bigint, '{\"stock\": 5}'::jsonb)"),
                         "ZD004"));
    EXPECT_EQ(server_.ask("SELECT * FROM dibs.take" + row + "'stock'::name, 1::numeric)"),
              "taken|4");
    EXPECT_EQ(server_.ask("SELECT dibs.lock_row" + row + "NULL::interval) ->> 'stock'"), "4");
    EXPECT_EQ(server_.ask("SELECT dibs.xact_lock('n'::text, '0'::interval)"), "t");
    EXPECT_EQ(server_.ask("BEGIN; SELECT dibs.begin_request('r'::text, 'p'::text, '1 s'::interval);"
                          "SELECT dibs.finish_request('r'::text, 'a'::text, '1 day'::interval);"
                          "COMMIT; SELECT result FROM dibs.begin_request('r'::text, 'p'::text, "
                          "NULL::interval)"),
              "a");
    auto session = server_.connect();
    postgres::fenced(session.raw(), "c", 8, [] {});
    EXPECT_EQ(postgres::idempotent(session.raw(), "r", "p", [] { return ""; }).answer, "a");
    auto mig = server_.connect("postgres", "mig");
    EXPECT_EQ(mig.ask("CREATE TABLE m(id int)"), "");
    EXPECT_EQ(mig.ask("SELECT dibs.protect('m'::regclass, NULL::text, 'refuse'::text)"), "");
    EXPECT_EQ(mig.ask("SELECT dibs.unprotect('m'::regclass, true)"), "");
}

TEST_F(Intruder, TheStoresStatementsFindItsOwnFunctions) {
    const auto url = server_.url();
    {
        client locks{url};
        ASSERT_TRUE(locks.try_acquire("before"));
    }
    offer_decoys("lease%");
    client locks{url};
    auto held = locks.try_acquire("k");
    ASSERT_TRUE(held);
    EXPECT_FALSE(locks.try_acquire("k"));
    (void)held->release();

    const store::postgres::statements texts("dibs");
    using store::postgres::statement;
    const std::vector<std::pair<statement, std::string>> functions{
        {statement::execute, "lease_execute_1"},
        {statement::list, "lease_list_1"},
        {statement::watch, "lease_watch_1"},
        {statement::unwatch, "lease_unwatch_1"},
        {statement::purge, "lease_purge_1"}};
    auto session = server_.connect();
    for (const auto& [which, function] : functions) {
        ASSERT_EQ(session.ask("PREPARE " + function + " AS " + texts.text(which)), "");
        const auto types = session.ask(
            "SELECT array_to_string(parameter_types, ' ') FROM pg_prepared_statements WHERE name = "
            "'" +
            function + "'");
        EXPECT_EQ(
            types,
            session.ask("SELECT array_to_string(proargtypes::oid[]::regtype[], ' ') FROM pg_proc "
                        "WHERE pronamespace = 'dibs'::regnamespace AND proowner = "
                        "'postgres'::regrole AND proname = '" +
                        function + "'"))
            << function;
    }
}

// Nor what lies on the caller's path, and fits better than what the server has for all types.
TEST_F(Intruder, NothingOfOthersOnTheSearchPathIsTakenForTheServersOwn) {
    const std::string decoys = R"sql(DO $$
DECLARE one text; made int := 0;
BEGIN
    FOREACH one IN ARRAY '{"cardinality(int8[])", "cardinality(text[])", "unnest(int8[])", "unnest(text[])",
                           "array_length(int8[], int4)", "array_length(text[], int4)",
                           "has_database_privilege(name, text)", "array_remove(bytea[], bytea)"}'::text[] LOOP
        EXECUTE format('CREATE FUNCTION public.%s RETURNS text LANGUAGE plpgsql AS %L', one,
                       'BEGIN RAISE EXCEPTION USING ERRCODE = ''ZZ999''; END');
    END LOOP;
    FOREACH one IN ARRAY '{"int8 & int4", "int8[] || int8", "int8[] || int8[]", "text[] || text"}'::text[] LOOP
        made := made + 1;
        EXECUTE format('CREATE FUNCTION public.decoy_%s(%s, %s) RETURNS %s LANGUAGE plpgsql AS %L', made,
                       split_part(one, ' ', 1), split_part(one, ' ', 3), split_part(one, ' ', 1),
                       'BEGIN RAISE EXCEPTION USING ERRCODE = ''ZZ999''; END');
        EXECUTE format('CREATE OPERATOR public.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = public.decoy_%s)',
                       split_part(one, ' ', 2), split_part(one, ' ', 1), split_part(one, ' ', 3), made);
    END LOOP;
END $$)sql";
    ASSERT_EQ(server_.connect("postgres", "mig").ask(decoys), "");
    EXPECT_TRUE(is_error(server_.ask("SELECT 8::int8 & 8"), "ZZ999")) << "the decoys fit";
    std::vector<std::string> urls{server_.url()};
    std::optional<pgbouncer> pooler;
    if (has_pgbouncer()) {
        urls.push_back(pooler.emplace(server_).url());
    }
    urls.push_back("postgres+advisory" + server_.url().substr(std::strlen("postgres")) +
                   "?schema=locks");
    for (const auto& url : urls) {
        client locks{url};
        acquire_options queued;
        queued.wait = 200ms;
        queued.order = order::queue;
        for (int round = 0; round < 2; ++round) {
            auto first = locks.try_acquire("first");
            ASSERT_TRUE(first) << url;
            client others{url};
            EXPECT_FALSE(others.acquire("first", queued)) << url;
            first->renew(10s);
            EXPECT_EQ(first->release(), release_outcome::released) << url;
        }
    }
}

}  // namespace
}  // namespace dibs::testing
