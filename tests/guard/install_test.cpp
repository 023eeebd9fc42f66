// SPDX-License-Identifier: Apache-2.0
// Goal: the data layer can be installed again at any time, by several at once, and never over a newer
// one. Method: the script itself, on a real server.
#include "guard/script.hpp"
#include "guarded_server.hpp"

#include <dibs/error.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace dibs::testing {
namespace {

std::error_code install_error(const postgres_server& server, const std::string& schema = "dibs") {
    try {
        guard::install(server.url(), schema);
        return {};
    } catch (const error& trouble) {
        return trouble.code();
    }
}

TEST(Install, MayBeRepeatedAndKeepsWhatIsThere) {
    const guarded_server server;
    ASSERT_EQ(server.ask("CREATE TABLE t(id int); INSERT INTO t VALUES(1);"
                         "SELECT dibs.protect('t')"),
              "");
    EXPECT_EQ(server.ask("SELECT dibs.claim('k', 7)"), "7");
    EXPECT_EQ(install_error(server), std::error_code{});
    EXPECT_TRUE(is_error(server.ask("SELECT dibs.claim('k', 6)"), "ZD001"));
    EXPECT_TRUE(is_error(server.ask("UPDATE t SET id = 2"), "ZD002"));
    EXPECT_EQ(server.ask("SELECT version FROM dibs.guard_version"),
              std::to_string(guard::script_version));
}

TEST(Install, IsAsGoodWherePlpgsqlTakesWarningsForErrors) {
    const postgres_server server;
    ASSERT_EQ(server.ask("ALTER DATABASE postgres SET plpgsql.extra_errors = 'all'"), "");
    ASSERT_EQ(install_error(server), std::error_code{});
    ASSERT_EQ(server.ask("CREATE TABLE t(id int PRIMARY KEY, stock int);"
                         "SELECT dibs.protect('t', 't:{id}'); SELECT dibs.versioned('t')"),
              "");
    EXPECT_EQ(
        server.ask("BEGIN; SELECT dibs.claim('t:1', 7); INSERT INTO t VALUES(1, 9);"
                   "SELECT dibs.take('t', '{\"id\": 1}', 'stock', 2);"
                   "SELECT dibs.update_versioned('t', '{\"id\": 1}', 2, '{\"stock\": 5}');"
                   "SELECT dibs.lock_row('t', '{\"id\": 1}', '0');"
                   "SELECT count(*) FROM dibs.lock_rows('t', 'id', '{1}', true);"
                   "SELECT dibs.begin_request('r', 'p'); SELECT dibs.finish_request('r', 'a');"
                   "SELECT dibs.xact_lock('n', '1 s'); COMMIT;"
                   "SELECT stock, version, (dibs.begin_request('r', 'p')).result FROM t"),
        "5|3|a");
    EXPECT_TRUE(is_error(server.ask("BEGIN; SELECT dibs.fence('t:1', 6); UPDATE t SET stock = 1"),
                         "ZD001"));
    EXPECT_EQ(server.ask("SELECT refused FROM dibs.guard_report() WHERE relation = 'public.t'"),
              "1");
    EXPECT_EQ(server.ask("SELECT dibs.unprotect('t', true)"), "");
}

TEST(Install, IsRefusedOverANewerOneAndChangesNothing) {
    const guarded_server server;
    auto session = server.connect();
    ASSERT_EQ(session.ask(guard::script("dibs", guard::script_version + 1)), "");
    const auto before = server.ask(
        "SELECT string_agg(xmin::text, ',') FROM pg_proc "
        "WHERE pronamespace = 'dibs'::regnamespace");
    EXPECT_EQ(install_error(server), make_error_code(errc::newer_format));
    EXPECT_EQ(server.ask("SELECT string_agg(xmin::text, ',') FROM pg_proc "
                         "WHERE pronamespace = 'dibs'::regnamespace"),
              before);
    EXPECT_TRUE(is_error(session.ask(guard::script("dibs")), "ZD006"));
    EXPECT_EQ(session.detail(),
              R"({"offered": )" + std::to_string(guard::script_version) + R"(, "installed": )" +
                  std::to_string(guard::script_version + 1) + "}");
}

TEST(Install, SeveralAtOnceDoNotDisturbEachOther) {
    const postgres_server server;
    std::vector<postgres_session> sessions;
    for (int one = 0; one < 4; ++one) {
        sessions.push_back(server.connect());
        sessions.back().send(guard::script("dibs"));
    }
    for (auto& session : sessions) {
        EXPECT_EQ(session.finish(), "");
    }
    EXPECT_EQ(server.ask("SELECT count(*) FROM dibs.guard_version"), "1");
}

TEST(Install, GoesIntoAnySchemaBesideOthers) {
    const postgres_server server;
    EXPECT_EQ(install_error(server, "locks"), std::error_code{});
    EXPECT_EQ(server.ask("SELECT locks.claim('k', 7)"), "7");
    EXPECT_TRUE(is_error(server.ask("SELECT locks.claim('k', 6)"), "ZD001"));
    EXPECT_EQ(server.ask("SELECT to_regnamespace('dibs')"), "");
    EXPECT_EQ(install_error(server), std::error_code{});
    EXPECT_EQ(server.ask("SELECT dibs.claim('k', 6)"), "6");
    // Also where SQL has the word for itself.
    EXPECT_EQ(install_error(server, "order"), std::error_code{});
    EXPECT_EQ(server.ask("CREATE TABLE t(id int); SELECT \"order\".protect('t');"
                         "INSERT INTO t SELECT 1 FROM \"order\".fence('k', 7)"),
              "1");
    EXPECT_TRUE(is_error(server.ask("UPDATE t SET id = 2 FROM \"order\".fence('k', 6)"), "ZD001"));
    EXPECT_EQ(
        server.ask("SELECT refused FROM \"order\".guard_report() WHERE relation = 'public.t'"),
        "1");
    for (const char* bad : {"", "Dibs", "a b", "x;DROP", "1st", "pg_mine"}) {
        EXPECT_FALSE(guard::is_schema_name(bad)) << bad;
    }
}

TEST(Install, GoesIntoASchemaThatIsThere) {
    const postgres_server server;
    ASSERT_EQ(server.ask("CREATE ROLE admin LOGIN; CREATE SCHEMA dibs AUTHORIZATION admin"), "");
    auto admin = server.connect("postgres", "admin");
    EXPECT_EQ(admin.ask(guard::script("dibs")), "");
    EXPECT_EQ(admin.ask("SELECT dibs.claim('k', 6)"), "6");
}

TEST(Install, ADatabaseThatIsNotThereIsCalledSo) {
    const postgres_server server;
    try {
        guard::install(server.url("nowhere"), "dibs");
        FAIL();
    } catch (const error& trouble) {
        EXPECT_EQ(trouble.code(), condition::invalid_argument);
        EXPECT_NE(std::string{trouble.what()}.find("no such database"), std::string::npos)
            << trouble.what();
    }
}

TEST(Install, WithoutRightsNothingIsMade) {
    const postgres_server server;
    ASSERT_EQ(server.ask("CREATE ROLE nobody LOGIN"), "");
    auto nobody = server.connect("postgres", "nobody");
    EXPECT_TRUE(is_error(nobody.ask(guard::script("dibs")), "42501"));
    EXPECT_EQ(server.ask("SELECT to_regnamespace('dibs')"), "");
}

TEST(Install, EveryFunctionPinsItsSearchPath) {
    const guarded_server server;
    // The one that runs for each row names all it uses by its schema instead.
    EXPECT_EQ(server.ask("SELECT string_agg(proname, ' ') FROM pg_proc WHERE pronamespace = "
                         "'dibs'::regnamespace AND NOT coalesce(proconfig::text, '') LIKE "
                         "'%search_path=pg_catalog, pg_temp%'"),
              "check_fence");
    EXPECT_EQ(server.ask("SELECT string_agg(proname, ' ' ORDER BY proname) FROM pg_proc WHERE "
                         "pronamespace = 'dibs'::regnamespace AND prosecdef"),
              "begin_request claim finish_request purge_requests");
}

TEST(Install, AnOldWayOfReadingTextsChangesNothing) {
    const postgres_server server;
    auto old = server.connect();
    ASSERT_EQ(old.ask("SET standard_conforming_strings = off; SET escape_string_warning = off"),
              "");
    ASSERT_EQ(old.ask(guard::script("dibs")), "");
    ASSERT_EQ(old.ask("CREATE TABLE t(id int); SELECT dibs.protect('t', 't:{id}');"
                      "INSERT INTO t SELECT 1 FROM dibs.fence('t:1', 7)"),
              "1");
    EXPECT_TRUE(is_error(old.ask("UPDATE t SET id = 1 FROM dibs.fence('t:1', 6)"), "ZD001"));
    EXPECT_EQ(old.ask("SELECT refused, key FROM dibs.guard_report() WHERE relation = 'public.t'"),
              "1|t:{id}");
    EXPECT_EQ(old.ask("SELECT to_hex(dibs.lock_number('invoice:1'))"), "805e300bd7e96a65");
}

TEST(Install, DefaultPrivilegesDoNotMatter) {
    const postgres_server server;
    ASSERT_EQ(server.ask("ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;"
                         "ALTER DEFAULT PRIVILEGES REVOKE USAGE, SELECT ON SEQUENCES FROM PUBLIC;"
                         "CREATE ROLE app LOGIN"),
              "");
    ASSERT_EQ(install_error(server), std::error_code{});
    ASSERT_EQ(server.ask("CREATE TABLE t(id int); INSERT INTO t VALUES(1); GRANT ALL ON t TO app;"
                         "SELECT dibs.protect('t')"),
              "");
    auto app = server.connect("postgres", "app");
    EXPECT_EQ(app.ask("UPDATE t SET id = 2 FROM dibs.fence('k', 7)"), "1");
    EXPECT_TRUE(is_error(app.ask("UPDATE t SET id = 2 FROM dibs.fence('k', 6)"), "ZD001"));
    EXPECT_TRUE(is_error(app.ask("UPDATE t SET id = 2"), "ZD002"));
    EXPECT_EQ(app.ask("SELECT refused FROM dibs.guard_report() WHERE relation = 'public.t'"), "2");
    EXPECT_EQ(app.ask("SELECT dibs.guard_refused('k')"), "1");
    EXPECT_TRUE(is_error(app.ask("SELECT dibs.claim('k', 7)"), "42501"));
}

TEST(Install, BringsAnOlderOneUpToDate) {
    const guarded_server server;
    // As version 2 left it.
    ASSERT_EQ(server.ask(as_of_before_version_3), "");
    ASSERT_EQ(server.ask("UPDATE dibs.guard_version SET version = 2;"
                         "CREATE TABLE t(id int); SELECT dibs.protect('t')"),
              "");
    EXPECT_TRUE(is_error(server.ask("INSERT INTO t VALUES(1)"), "ZD002"));
    EXPECT_EQ(install_error(server), std::error_code{});
    EXPECT_EQ(server.ask("SELECT dibs.guard_refused('k')"), "0");
    EXPECT_EQ(server.refused("public.t"), "1");
    EXPECT_TRUE(is_error(server.ask("BEGIN; SELECT dibs.fence('k', 7); SELECT dibs.fence('k', 6)"),
                         "ZD001"));
    EXPECT_EQ(server.ask("SELECT dibs.guard_refused('k')"), "1");
}

TEST(Install, SurvivesDumpAndRestore) {
    const guarded_server server;
    ASSERT_EQ(server.ask("CREATE TABLE t(id int); INSERT INTO t VALUES(1);"
                         "SELECT dibs.protect('t', 't:{id}');"
                         "UPDATE t SET id = 1 FROM dibs.fence('t:1', 7)"),
              "1");
    ASSERT_TRUE(is_error(server.ask("UPDATE t SET id = 1 FROM dibs.fence('t:1', 6)"), "ZD001"));
    ASSERT_EQ(server.ask("SELECT dibs.claim('k', 7)"), "7");
    ASSERT_EQ(server.ask("CREATE DATABASE copy"), "");
    const auto programs = std::string{DIBS_POSTGRES_PROGRAMS};
    ASSERT_EQ(std::system((programs + "/pg_dump '" + server.socket_url() + "' | " + programs +
                           "/psql -q -v ON_ERROR_STOP=1 '" + server.socket_url("copy") + "' >'" +
                           server.folder() + "/restored'")
                              .c_str()),
              0);
    EXPECT_TRUE(
        is_error(server.ask("UPDATE t SET id = 1 FROM dibs.fence('t:1', 6)", "copy"), "ZD001"));
    EXPECT_TRUE(is_error(server.ask("SELECT dibs.claim('k', 6)", "copy"), "ZD001"));
    EXPECT_EQ(server.ask("SELECT refused FROM dibs.guard_report() WHERE key = 't:{id}'", "copy"),
              "2");
}

}  // namespace
}  // namespace dibs::testing
