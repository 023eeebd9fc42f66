// SPDX-License-Identifier: Apache-2.0
// `dibs guard`, and the demos that keep their data in PostgreSQL, on a real server.
#include "support.hpp"
#include "support/places.hpp"
#include "support/postgres_server.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace dibs::testing {
namespace {

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

std::string demo_schemas(const postgres_server& server) {
    return server.ask("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'dibs_demo_%'");
}

TEST(GuardCommand, InstallsWhatItPrints) {
    const folder here;
    const postgres_server server;
    const auto installed = run_dibs(here, {"guard", "install", "--store", server.url()});
    EXPECT_EQ(installed.status, 0) << installed.err;
    EXPECT_EQ(installed.err, "");
    EXPECT_EQ(server.ask("SELECT dibs.claim('k', 5)"), "5");
    EXPECT_EQ(
        run_dibs(here, {"--store", server.url(), "guard", "install", "--schema", "other"}).status,
        0);
    EXPECT_EQ(server.ask("SELECT other.claim('k', 5)"), "5");

    const auto printed = run_dibs(here, {"guard", "sql", "--schema", "third"});
    EXPECT_EQ(printed.status, 0);
    EXPECT_EQ(server.connect().ask(printed.out), "");
    EXPECT_EQ(server.ask("SELECT third.claim('k', 5)"), "5");
    EXPECT_EQ(server.ask("SELECT count(DISTINCT n) FROM (SELECT count(*) n FROM pg_proc WHERE "
                         "pronamespace::regnamespace::text IN ('dibs', 'other', 'third') "
                         "GROUP BY pronamespace) s"),
              "1");
}

TEST(GuardCommand, TellsWhatIsWrong) {
    const folder here;
    const postgres_server server;
    EXPECT_EQ(run_dibs(here, {"guard"}).status, 64);
    EXPECT_EQ(run_dibs(here, {"guard", "remove"}).status, 64);
    EXPECT_EQ(run_dibs(here, {"guard", "sql", "--schema", "x; DROP"}).status, 64);
    EXPECT_TRUE(has(run_dibs(here, {"guard", "sql", "--schema", "pg_x"}).err, "no pg_"));
    EXPECT_EQ(run_dibs(here, {"guard", "sql", "--store", server.url()}).status, 64);
    const auto file = run_dibs(here, {"guard", "install"});
    EXPECT_EQ(file.status, 64);
    EXPECT_TRUE(has(file.err, "postgres://")) << file.err;

    ASSERT_EQ(server.ask("CREATE ROLE app LOGIN"), "");
    const auto rights =
        run_dibs(here, {"guard", "install", "--store", server.url("postgres", "app")});
    EXPECT_EQ(rights.status, 78);
    EXPECT_TRUE(has(rights.err, "permission denied")) << rights.err;

    ASSERT_EQ(run_dibs(here, {"guard", "install", "--store", server.url()}).status, 0);
    ASSERT_EQ(server.ask("UPDATE dibs.guard_version SET version = 999"), "1");
    const auto newer = run_dibs(here, {"guard", "install", "--store", server.url()});
    EXPECT_EQ(newer.status, 78);
    EXPECT_TRUE(has(newer.err, "999")) << newer.err;

    const auto gone =
        run_dibs(here,
                 {"guard",
                  "install",
                  "--store",
                  "postgres://u:hush@127.0.0.1:" + std::to_string(free_port()) + "/x"});
    EXPECT_EQ(gone.status, 69);
    EXPECT_FALSE(has(gone.err, "hush")) << gone.err;
}

TEST(GuardCommand, DoesNotWaitForEverForAServerThatIsSilent) {
    const folder here;
    const int silent = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    ASSERT_EQ(::bind(silent, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
    ASSERT_EQ(::listen(silent, 8), 0);
    ASSERT_EQ(::getsockname(silent, reinterpret_cast<sockaddr*>(&at), &size), 0);
    const auto port = std::to_string(ntohs(at.sin_port));
    const auto asked =
        run_dibs(here, {"guard", "install", "--store", "postgres://u@127.0.0.1:" + port + "/x"});
    EXPECT_EQ(asked.status, 69);
    EXPECT_TRUE(has(asked.err, "timeout expired")) << asked.err;
    ::close(silent);
}

TEST(Migration, OneRunsItAndThoseWhoWaitDoNotHoldUpAConcurrentIndex) {
    const folder here;
    const postgres_server server;
    ASSERT_EQ(server.ask("CREATE TABLE product AS SELECT i AS id FROM generate_series(1, 1000) i;"
                         "CREATE TABLE started(n int)"),
              "");
    const auto psql = std::string{DIBS_POSTGRES_PROGRAMS} + "/psql -qX -v ON_ERROR_STOP=1 '" +
                      server.socket_url() + "' -c ";
    // Waits until the others do, and then builds the index.
    const auto script = psql + "'INSERT INTO started VALUES(1)' && while [ ! -e '" +
                        here.file("go") + "' ]; do sleep 0.01; done && " + psql +
                        "'CREATE INDEX CONCURRENTLY product_id ON product(id)'";
    std::vector<std::unique_ptr<process>> copies;
    for (int copy = 0; copy < 3; ++copy) {
        copies.push_back(std::make_unique<process>(dibs_on(here,
                                                           {"once",
                                                            "migrate-v42",
                                                            "--slot",
                                                            "v42",
                                                            "--wait",
                                                            "1m",
                                                            "--store",
                                                            server.url(),
                                                            "--",
                                                            "/bin/sh",
                                                            "-c",
                                                            script})));
    }
    ASSERT_TRUE(eventually([&] { return server.ask("SELECT count(*) FROM started") == "1"; }));
    ASSERT_TRUE(eventually([&] {
        return server.ask("SELECT count(DISTINCT process) FROM dibs.lease_waiter") == "2";
    }));
    write_file(here.file("go"), "");
    for (auto& copy : copies) {
        EXPECT_EQ(copy->wait().status, 0);
        // Whoever comes back finds it done.
        EXPECT_EQ(
            server.ask("SELECT count(*) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
                       "WHERE c.relname = 'product_id' AND i.indisvalid"),
            "1");
    }
    EXPECT_EQ(server.ask("SELECT count(*) FROM started"), "1");
}

TEST(GuardCommand, ShowAndDoctorTellWhatWasRefused) {
    const folder here;
    const postgres_server server;
    const auto ask = [&](const std::vector<std::string>& words) {
        auto how = dibs_on(here, words);
        how.variables["DIBS_STORE"] = server.url();
        return process(how).wait();
    };
    ASSERT_EQ(ask({"run", "k", "true"}).status, 0);
    // Nothing is said of what is not there.
    EXPECT_FALSE(has(ask({"show", "k"}).out, "refused"));
    EXPECT_FALSE(has(ask({"show", "k", "--json"}).out, "refused"));
    EXPECT_FALSE(has(ask({"doctor"}).out, "guard"));
    ASSERT_EQ(ask({"guard", "install"}).status, 0);
    EXPECT_TRUE(has(ask({"show", "k"}).out, "refused     no write and no claim"))
        << ask({"show", "k"}).out;
    EXPECT_TRUE(has(ask({"doctor"}).out, "0 tables protected; refused 0 writes and 0 claims"));
    ASSERT_EQ(server.ask("CREATE TABLE sale(id int, day int) PARTITION BY RANGE (day);"
                         "CREATE TABLE sale_1 PARTITION OF sale FOR VALUES FROM (0) TO (10);"
                         "SELECT dibs.protect('sale');"
                         "INSERT INTO sale SELECT 1, 1 FROM dibs.claim('k', 5)"),
              "1");
    for (const auto* late : {"INSERT INTO sale SELECT 1, 1 FROM dibs.claim('k', 4)",
                             "UPDATE sale SET id = 2 FROM dibs.fence('k', 4)",
                             "DELETE FROM sale"}) {
        ASSERT_TRUE(has(server.ask(late), "ZD00")) << late;
    }
    EXPECT_TRUE(has(ask({"show", "k"}).out, "refused     2 writes and claims at most"))
        << ask({"show", "k"}).out;
    EXPECT_TRUE(has(ask({"show", "k", "--json"}).out, "\"refused_at_most\": 2"))
        << ask({"show", "k", "--json"}).out;
    EXPECT_TRUE(has(ask({"show", "other"}).out, "refused     no write"));
    const auto sound = ask({"doctor"}).out;
    EXPECT_TRUE(has(sound, "1 table protected; refused 2 writes and 1 claim\n")) << sound;
    EXPECT_TRUE(has(sound, "ok       guarded table   public.sale: refused 2 writes\n")) << sound;
    ASSERT_EQ(server.ask("ALTER TABLE sale_1 DISABLE TRIGGER zzz_dibs_fence;"
                         "CREATE TABLE sale_2 PARTITION OF sale FOR VALUES FROM (10) TO (20)"),
              "");
    const auto open = ask({"doctor"}).out;
    EXPECT_TRUE(has(open, "warning  guarded table   public.sale_1: its writes are not checked"))
        << open;
    EXPECT_TRUE(has(open, "warning  guarded table   public.sale_2: TRUNCATE of it")) << open;
    EXPECT_TRUE(has(ask({"doctor", "--json"}).out, "public.sale_1: its writes are not checked"));
    // Of an earlier release.
    ASSERT_EQ(
        server.ask("DROP FUNCTION dibs.guard_gaps(), dibs.guard_refused(text);"
                   "CREATE OR REPLACE FUNCTION dibs.guard_report() RETURNS TABLE(relation "
                   "text, key text, unfenced text, refused bigint, enabled boolean) "
                   "LANGUAGE sql AS $$SELECT 'public.sale', NULL, 'refuse', 2::bigint, true$$"),
        "");
    EXPECT_TRUE(has(ask({"doctor"}).out, "dibs guard install brings it up to date"));
    EXPECT_FALSE(has(ask({"show", "k"}).out, "refused"));
}

TEST(GuardCommand, WhatOthersPutUnderItsNamesIsNotCalled) {
    const folder here;
    const postgres_server server;
    const auto store = server.url();
    ASSERT_EQ(run_dibs(here, {"run", "--store", store, "k", "true"}).status, 0);
    ASSERT_EQ(server.ask("CREATE ROLE mig LOGIN; GRANT CREATE, USAGE ON SCHEMA dibs TO mig"), "");
    ASSERT_EQ(
        server.connect("postgres", "mig")
            .ask("CREATE FUNCTION dibs.guard_refused(text) RETURNS bigint LANGUAGE sql AS "
                 "'ALTER ROLE mig SUPERUSER; SELECT 1::bigint';"
                 "CREATE FUNCTION dibs.guard_report() RETURNS TABLE(relation text, refused "
                 "bigint) LANGUAGE sql AS 'ALTER ROLE mig SUPERUSER; SELECT ''x'', 1::bigint'"),
        "");
    EXPECT_FALSE(has(run_dibs(here, {"show", "k", "--store", store}).out, "refused"));
    EXPECT_FALSE(has(run_dibs(here, {"doctor", "--store", store}).out, "guard"));
    EXPECT_EQ(server.ask("SELECT rolsuper FROM pg_roles WHERE rolname = 'mig'"), "f");
}

// Case 187: the charge is made, and then the store takes nothing any more.
TEST(PostgresIdempotent, AStoreThatTurnsReadOnlyStopsTheJobBeforeItChargesAgain) {
    const folder here;
    postgres_server server;
    const auto charge = [&](const std::string& order, const std::string& more = "") {
        auto how = dibs_on(here,
                           {"idempotent",
                            order,
                            "--fingerprint",
                            "5 euros",
                            "--at-most-once",
                            "--ttl",
                            "5s",
                            "--wait",
                            "0s",
                            "--",
                            "/bin/sh",
                            "-c",
                            "echo $DIBS_IDEMPOTENCY_KEY >>'" + here.file("charges") + "'" + more});
        how.variables["DIBS_STORE"] = server.url();
        return how;
    };
    const auto charges = [&] { return read_file(here.file("charges")); };
    ASSERT_EQ(process(charge("first")).wait().status, 0);
    // At it while the server is restarted, after which it takes no writes.
    process second(
        charge("second", "; while [ ! -e '" + here.file("go") + "' ]; do sleep 0.01; done"));
    ASSERT_TRUE(eventually([&] { return charges() == "first\nsecond\n"; }));
    ASSERT_TRUE(server.restart({"default_transaction_read_only=on"})) << server.log();
    write_file(here.file("go"), "");
    // It was done, and that is what its caller is told, with what cannot be kept; or it was stopped
    // in time.
    const auto done = second.wait();
    EXPECT_TRUE(done.status != 0 || has(done.err, "in doubt from now on")) << done.err;
    for (int again = 0; again < 2; ++again) {
        EXPECT_EQ(process(charge("second")).wait().status, 69);
        EXPECT_EQ(process(charge("third")).wait().status, 69);
    }
    EXPECT_EQ(charges(), "first\nsecond\n");
    ASSERT_TRUE(server.restart({"default_transaction_read_only=off"})) << server.log();
    EXPECT_EQ(process(charge("third")).wait().status, 0);
    // Whether the second was done nobody has told: it is for somebody to look at.
    EXPECT_EQ(process(charge("second")).wait().status, 77);
    EXPECT_EQ(charges(), "first\nsecond\nthird\n");
}

TEST(PostgresPlace, APasswordThatWasNotEncodedIsNotTold) {
    const folder here;
    for (const auto* url : {"postgres://u:hunter2/x@127.0.0.1:1/db",
                            "postgres://u:hunter2?x@127.0.0.1:1/db",
                            "postgres+advisory://u:hunter2#x@127.0.0.1:1/db"}) {
        const auto told = run_dibs(here, {"ls", "--store", url});
        EXPECT_NE(told.status, 0) << url;
        EXPECT_FALSE(has(told.err, "hunter2")) << told.err;
    }
    const auto port = run_dibs(here, {"ls", "--store", "postgres://u:hunter2/x@h:1/db"});
    EXPECT_TRUE(has(port.err, "%2F")) << port.err;
}

// A refusal by the server is final for who does not wait; it took the five seconds of a store that
// does not answer.
TEST(PostgresPlace, WhoDoesNotWaitIsToldAtOnceThatTheServerIsReadOnly) {
    const folder here;
    const postgres_server server;
    ASSERT_EQ(run_dibs(here, {"run", "--store", server.url(), "k", "true"}).status, 0);
    ASSERT_EQ(server.ask("ALTER DATABASE postgres SET default_transaction_read_only = on"), "");
    const std::vector<std::vector<std::string>> commands{
        {"run", "k", "true"},
        {"acquire", "k"},
        {"once", "k", "--slot", "1", "true"},
        {"idempotent", "k", "--fingerprint", "x", "--wait", "0s", "true"}};
    for (const auto& words : commands) {
        auto how = dibs_on(here, words);
        how.variables["DIBS_STORE"] = server.url();
        const auto begun = std::chrono::steady_clock::now();
        const auto told = process(how).wait();
        EXPECT_EQ(told.status, 69) << words.front();
        EXPECT_TRUE(has(told.err, "read-only")) << told.err;
        EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds{4})
            << words.front();
    }
}

TEST(PostgresPlace, WhoWaitsWaitsForAStandbyToBePromoted) {
    const folder here;
    const postgres_server primary;
    ASSERT_EQ(run_dibs(here, {"run", "--store", primary.url(), "k", "true"}).status, 0);
    const postgres_server standby{primary, "second"};
    const auto echo = [&](std::vector<std::string> wait) {
        std::vector<std::string> all{"run", "--store", standby.url(), "k"};
        all.insert(all.end(), wait.begin(), wait.end());
        all.insert(all.end(), {"--", "echo", "ran"});
        return dibs_on(here, all);
    };
    EXPECT_EQ(process(echo({})).wait().status, 69);
    process waits(echo({"--wait", "1m"}));
    std::this_thread::sleep_for(std::chrono::milliseconds{700});
    EXPECT_FALSE(waits.ended()) << waits.err();
    standby.promote();
    const auto told = waits.wait();
    EXPECT_EQ(told.out, "ran\n") << told.err;
}

std::string tables_of(const postgres_server& server) {
    return server.ask("SELECT count(*) FROM pg_namespace WHERE nspname = 'dibs'");
}

TEST(PostgresPlace, LookingMakesNoTables) {
    const folder here;
    const postgres_server server;
    for (const auto* options : {"", "?create=no"}) {
        for (const auto& words : looking_commands()) {
            auto how = dibs_on(here, words);
            how.variables["DIBS_STORE"] = server.url() + options;
            const auto found = process(how).wait();
            EXPECT_EQ(found.status, 69) << words.front() << found.err;
            EXPECT_TRUE(has(found.err, "nobody has made the tables of dibs in the schema dibs"))
                << found.err;
        }
    }
    const auto refused =
        run_dibs(here, {"run", "--store", server.url() + "?create=no", "k", "true"});
    EXPECT_EQ(refused.status, 69) << refused.err;
    EXPECT_TRUE(has(refused.err, "unless the URL says create=no")) << refused.err;
    EXPECT_EQ(run_dibs(here, {"ls", "--store", server.url() + "?create=never"}).status, 78);
    EXPECT_EQ(tables_of(server), "0");
    ASSERT_EQ(run_dibs(here, {"run", "--store", server.url(), "k", "true"}).status, 0);
    EXPECT_EQ(tables_of(server), "1");
    EXPECT_EQ(run_dibs(here, {"ls", "--store", server.url()}).status, 0);
    EXPECT_FALSE(has(run_dibs(here, {"show", "k", "--store", server.url()}).out, "create"));
    EXPECT_EQ(run_dibs(here, {"run", "--store", server.url() + "?create=no", "k", "true"}).status,
              0);
}

TEST(PostgresPlace, DoctorTellsWhatItCanWithoutTablesAndMakesNone) {
    const folder here;
    const postgres_server server{{"fsync=on"}};
    for (const auto& url :
         {server.url(),
          "postgres+advisory" + server.url().substr(std::string{"postgres"}.size())}) {
        const auto found = run_dibs(here, {"doctor", "--store", url});
        EXPECT_EQ(found.status, 0) << found.out;
        EXPECT_TRUE(has(found.out, "warning  store")) << found.out;
        EXPECT_TRUE(has(found.out, "nobody has made the tables")) << found.out;
        EXPECT_TRUE(has(found.out, "PostgreSQL 1")) << found.out;
        EXPECT_TRUE(has(found.out, "this user may make the tables")) << found.out;
        EXPECT_FALSE(has(found.out, "records")) << found.out;
        EXPECT_EQ(tables_of(server), "0");
    }
    ASSERT_EQ(run_dibs(here, {"run", "--store", server.url(), "k", "true"}).status, 0);
    const auto later = run_dibs(here, {"doctor", "--store", server.url()});
    EXPECT_EQ(later.status, 0) << later.out;
    EXPECT_TRUE(has(later.out, "ok       records")) << later.out;
    EXPECT_FALSE(has(later.out, "nobody has made")) << later.out;

    const auto gone = run_dibs(
        here, {"doctor", "--store", "postgres://u:hush@127.0.0.1:" + std::to_string(free_port())});
    EXPECT_EQ(gone.status, 1);
    EXPECT_TRUE(has(gone.out, "problem  store")) << gone.out;
    EXPECT_FALSE(has(gone.out, "hush")) << gone.out;
}

TEST(PostgresDemo, ConcurrentUpdatesLoseOneAndThenNone) {
    const folder here;
    const postgres_server server;
    const auto found =
        run_dibs(here, {"demo", "concurrent-updates", "--fast", "--data", server.url()});
    EXPECT_EQ(found.status, 0) << found.out << found.err;
    const auto lost = found.out.find("final stock: 8 (should be 5)");
    ASSERT_NE(lost, std::string::npos) << found.out;
    std::size_t right = 0;
    for (auto at = found.out.find("final stock: 5", lost); at != std::string::npos;
         at = found.out.find("final stock: 5", at + 1)) {
        ++right;
    }
    EXPECT_EQ(right, 3U) << found.out;
    EXPECT_TRUE(has(found.out, "admin-B  version changed under me -> retry 1")) << found.out;
    EXPECT_TRUE(has(found.out, "admin-B  sold no 9 more: 5 left")) << found.out;
    EXPECT_EQ(demo_schemas(server), "0");
}

TEST(PostgresDemo, FencingShowsThatTheProtectedTableRefusesTheLateWrite) {
    const folder here;
    const postgres_server server;
    const auto found = run_dibs(here, {"demo", "fencing", "--fast", "--data", server.url()});
    EXPECT_EQ(found.status, 0) << found.out << found.err;
    EXPECT_TRUE(has(found.out, "plain row accepted, guarded row REFUSED")) << found.out;
    EXPECT_TRUE(has(found.out, "plain row:   written last by A")) << found.out;
    EXPECT_TRUE(has(found.out, "guarded row: written last by B")) << found.out;
    EXPECT_EQ(demo_schemas(server), "0");
}

TEST(PostgresDemo, LocksMadeByHandLieInAFileAndThoseOfDibsInTheDatabase) {
    const folder here;
    const postgres_server server;
    for (const auto* name : {"blind-release", "no-expiry"}) {
        const auto found = run_dibs(here, {"demo", name, "--fast", "--store", server.url()});
        EXPECT_EQ(found.status, 0) << name << ": " << found.out << found.err;
    }
    EXPECT_NE(server.ask("SELECT count(*) FROM dibs.lease"), "0") << "the store was not used";
}

TEST(PostgresDemo, FencingByTheStoreOfTheSameDatabase) {
    const folder here;
    const postgres_server server;
    const auto found = run_dibs(here, {"demo", "fencing", "--fast", "--store", server.url()});
    EXPECT_EQ(found.status, 0) << found.out << found.err;
    EXPECT_TRUE(has(found.out, "plain row accepted, guarded row REFUSED")) << found.out;
    EXPECT_EQ(demo_schemas(server), "0");
    // Store and guard share a schema.
    EXPECT_EQ(run_dibs(here, {"guard", "install", "--store", server.url()}).status, 0);
    EXPECT_EQ(run_dibs(here, {"ls", "--store", server.url()}).status, 0);
    EXPECT_EQ(server.ask("SELECT dibs.claim('k', 5)"), "5");
}

TEST(PostgresDemo, WhatAKilledOneLeftGoesWithTheNext) {
    const folder here;
    const postgres_server server;
    launch how;
    how.program = tests::places::command;
    how.words = {"demo", "concurrent-updates", "--data", server.url()};
    process running(how);
    ASSERT_TRUE(eventually([&] { return has(running.out(), "Stock is 10"); }));
    EXPECT_EQ(demo_schemas(server), "1");
    running.signal(SIGINT);
    (void)running.wait();
    // The server notices the end of a session a moment after the process is gone.
    ASSERT_TRUE(eventually([&] {
        return server.ask(
                   "SELECT count(*) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND "
                   "backend_type = 'client backend'") == "0";
    }));
    EXPECT_EQ(
        run_dibs(here, {"demo", "concurrent-updates", "--fast", "--data", server.url()}).status, 0);
    EXPECT_EQ(demo_schemas(server), "0");
    EXPECT_EQ(run_dibs(here, {"demo", "concurrent-updates", "--data", "redis://x"}).status, 64);
    EXPECT_EQ(run_dibs(here, {"demo", "no-expiry", "--data", server.url()}).status, 64);
}

}  // namespace
}  // namespace dibs::testing
