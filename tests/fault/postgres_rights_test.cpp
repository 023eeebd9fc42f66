// SPDX-License-Identifier: Apache-2.0
// A user with exactly the rights that docs/stores/postgres.md lists can do everything, and one
// without them is told which is missing.

#include "postgres_peer.hpp"
#include "support/places.hpp"

#include <fstream>

namespace dibs::testing {

namespace {

/// The statements of the page that give a user of the tables its rights.
std::vector<std::string> documented_rights() {
    std::ifstream page{std::string{tests::places::source_folder} + "/docs/stores/postgres.md"};
    std::vector<std::string> all;
    for (std::string line; std::getline(page, line);) {
        if (line.starts_with("GRANT ")) {
            all.push_back(line.substr(0, line.find(';') + 1));
        }
    }
    return all;
}

struct PostgresRights : ::testing::Test {
    PostgresRights() { server.ask("CREATE USER app; CREATE USER maker"); }

    postgres_server server;
};

}  // namespace

TEST_F(PostgresRights, TheDocumentedOnesAreEnough) {
    postgres_peer maker{server.url()};
    ASSERT_EQ(maker.open(), std::error_code{}) << maker.detail;
    const auto rights = documented_rights();
    ASSERT_EQ(rights.size(), 3U);
    for (const auto& one : rights) {
        ASSERT_EQ(server.ask(one), "") << one;
    }
    postgres_peer app{server.url("postgres", "app"), 2};
    ASSERT_EQ(app.open(), std::error_code{}) << app.detail;
    ASSERT_EQ(app.ask(acquire_of("k", holder_of(1))).what, verdict::granted);
    EXPECT_EQ(app.ask(renew_of("k", holder_of(1))).what, verdict::renewed);
    EXPECT_EQ(app.ask(queued_acquire_of("k", holder_of(2))).what, verdict::held);
    EXPECT_EQ(app.ask(shared_acquire_of("s", holder_of(3), 1, 2)).what, verdict::granted);
    EXPECT_EQ(app.ask(release_of("s", holder_of(3))).what, verdict::released);
    EXPECT_EQ(app.ask(block_of("b", 1h, "maintenance")).what, verdict::block_set);
    bool ready = false;
    int wakes = 0;
    const auto id = app.opened->watch(
        "k",
        [&](std::error_code error) {
            EXPECT_FALSE(error) << error.message();
            ready = true;
        },
        [&](auto) { ++wakes; });
    ASSERT_TRUE(app.world.run_until([&] { return ready; }));
    EXPECT_EQ(app.ask(finish_of("k", holder_of(1), result_of("outcome", 1h, 1h))).what,
              verdict::finished);
    EXPECT_TRUE(app.world.run_until([&] { return wakes > 0; }));
    app.opened->unwatch(id);
    std::optional<core::page> shown;
    app.opened->list("", "", 10, [&](core::page page) { shown = std::move(page); });
    ASSERT_TRUE(app.world.run_until([&] { return shown.has_value(); }));
    EXPECT_FALSE(shown->error) << shown->detail;
    EXPECT_EQ(shown->records.size(), 3U);
}

TEST_F(PostgresRights, WhatIsMissingIsNamed) {
    postgres_peer maker{server.url()};
    ASSERT_EQ(maker.open(), std::error_code{}) << maker.detail;
    postgres_peer app{server.url("postgres", "app"), 2};
    EXPECT_EQ(app.open(), errc::permission_denied);
    EXPECT_NE(app.detail.find("schema dibs"), std::string::npos) << app.detail;
    ASSERT_EQ(server.ask("GRANT USAGE ON SCHEMA dibs TO app"), "");
    EXPECT_EQ(app.open(), errc::permission_denied);
    EXPECT_NE(app.detail.find("lease_format"), std::string::npos) << app.detail;
    ASSERT_EQ(server.ask("GRANT SELECT ON dibs.lease_format TO app"), "");
    ASSERT_EQ(app.open(), std::error_code{}) << app.detail;
    const auto given = app.ask(acquire_of("k", holder_of(1)));
    EXPECT_EQ(given.took, effect::no);
    EXPECT_EQ(given.error, errc::permission_denied);
    EXPECT_NE(given.detail.find("table lease"), std::string::npos) << given.detail;
}

// Whoever does not see a holder would be let in beside it.
TEST_F(PostgresRights, APolicyThatHidesHoldersIsToldNotGoneBy) {
    postgres_peer maker{server.url()};
    ASSERT_EQ(maker.open(), std::error_code{}) << maker.detail;
    for (const auto& one : documented_rights()) {
        ASSERT_EQ(server.ask(one), "") << one;
    }
    ASSERT_EQ(server.ask("ALTER TABLE dibs.lease_grant ENABLE ROW LEVEL SECURITY; CREATE POLICY "
                         "own ON dibs.lease_grant TO app USING (false) WITH CHECK (true)"),
              "");
    ASSERT_EQ(maker.ask(shared_acquire_of("s", holder_of(1), 2, 2)).what, verdict::granted);
    ASSERT_EQ(maker.ask(shared_acquire_of("r", holder_of(2), 1, 100)).what, verdict::granted);
    const auto refused = [](postgres_peer& app) {
        ASSERT_EQ(app.open(), std::error_code{}) << app.detail;
        for (const auto& given : {app.ask(shared_acquire_of("s", holder_of(3), 1, 2)),
                                  app.ask(acquire_of("r", holder_of(4)))}) {
            EXPECT_EQ(given.took, effect::no);
            EXPECT_EQ(given.error, errc::permission_denied);
            EXPECT_NE(given.detail.find("row-level security"), std::string::npos) << given.detail;
        }
    };
    postgres_peer app{server.url("postgres", "app"), 2};
    refused(app);
    // What a session has set counts for nothing: behind a pooler it is not ours.
    ASSERT_EQ(server.ask("ALTER USER app SET row_security = on"), "");
    postgres_session lent{server.url("postgres", "app")};
    EXPECT_NE(lent.ask("SELECT * FROM dibs.lease_list_1('', '', 10)").find("row-level security"),
              std::string::npos);
    // And a listing shows no key as free that is held.
    std::optional<core::page> shown;
    app.opened->list("", "", 10, [&](core::page page) { shown = std::move(page); });
    ASSERT_TRUE(app.world.run_until([&] { return shown.has_value(); }));
    EXPECT_EQ(shown->error, errc::permission_denied) << shown->detail;
}

TEST_F(PostgresRights, WhoMayNotMakeTheTablesIsTold) {
    postgres_peer app{server.url("postgres", "app")};
    EXPECT_EQ(app.open(), errc::permission_denied);
    EXPECT_NE(app.detail.find("GRANT CREATE ON DATABASE"), std::string::npos) << app.detail;
    // A schema of one's own is enough.
    ASSERT_EQ(server.ask("CREATE SCHEMA dibs AUTHORIZATION maker"), "");
    postgres_peer maker{server.url("postgres", "maker"), 2};
    ASSERT_EQ(maker.open(), std::error_code{}) << maker.detail;
    EXPECT_EQ(maker.ask(acquire_of("k", holder_of(1))).what, verdict::granted);
}

}  // namespace dibs::testing
