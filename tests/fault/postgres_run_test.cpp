// SPDX-License-Identifier: Apache-2.0
// The command on a real PostgreSQL server, directly and through a pooler, while the server fails.

#include "support.hpp"
#include "support/postgres_server.hpp"
#include "support/relay.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <vector>

namespace dibs::testing {

namespace {

struct PostgresRun : ::testing::Test {
    [[nodiscard]] launch dibs_at(const std::string& url, const std::vector<std::string>& words) {
        launch how;
        how.words = words;
        how.variables["DIBS_STORE"] = url;
        how.cwd = here.path();
        return how;
    }
    outcome dibs(const std::vector<std::string>& words) {
        return process(dibs_at(server.url(), words)).wait();
    }
    /// `dibs run` of the program that writes who is at work when.
    [[nodiscard]] launch beating(const std::string& url, std::vector<std::string> options) {
        options.insert(options.begin(), {"run", "k"});
        options.insert(options.end(), {"--", child_program(), "beat", here.file("beats")});
        return dibs_at(url, options);
    }
    [[nodiscard]] bool somebody_beats() const { return !read_beats(here.file("beats")).empty(); }

    postgres_server server;
    folder here;
};

}  // namespace

TEST_F(PostgresRun, EveryCommandWorks) {
    auto ended = dibs({"run", "k", "--", "sh", "-c", "echo $DIBS_FENCE"});
    ASSERT_EQ(ended.status, 0) << ended.err;
    EXPECT_GT(std::stoull(ended.out), 1'600'000'000'000'000ULL);
    ended = dibs({"once", "job", "--slot", "today", "--", "echo", "worked"});
    EXPECT_EQ(ended.status, 0) << ended.err;
    EXPECT_EQ(ended.out, "worked\n");
    ended = dibs({"once", "job", "--slot", "today", "--", "echo", "worked"});
    EXPECT_EQ(ended.status, 0) << ended.err;
    EXPECT_EQ(ended.out, "") << "it ran already";
    EXPECT_NE(dibs({"runs", "job"}).out.find("done"), std::string::npos);

    ended = dibs({"acquire", "scripted", "--ttl", "1m"});
    ASSERT_EQ(ended.status, 0) << ended.err;
    EXPECT_EQ(dibs({"run", "scripted", "--", "true"}).status, 75);
    EXPECT_NE(dibs({"ls"}).out.find("scripted"), std::string::npos);
    const auto shown = dibs({"show", "scripted", "--json"});
    EXPECT_EQ(shown.status, 0);
    const auto at = shown.out.find("\"fence\":");
    ASSERT_NE(at, std::string::npos) << shown.out;
    const auto fence = std::to_string(std::stoull(shown.out.substr(at + 8)));
    EXPECT_EQ(dibs({"check", "scripted", "--fence", fence}).status, 0);
    EXPECT_EQ(dibs({"break", "scripted", "--yes", "--fence", fence}).status, 0);
    EXPECT_EQ(dibs({"run", "scripted", "--", "true"}).status, 0);

    EXPECT_EQ(dibs({"hold", "k", "--for", "1h", "--reason", "maintenance"}).status, 0);
    ended = dibs({"run", "k", "--", "true"});
    EXPECT_EQ(ended.status, 75);
    EXPECT_EQ(dibs({"hold", "k", "--lift"}).status, 0);
    EXPECT_EQ(dibs({"run", "k", "--", "true"}).status, 0);

    ended = dibs({"bench", "--seconds", "1", "--callers", "4"});
    EXPECT_EQ(ended.status, 0) << ended.err;
    ended = dibs({"doctor"});
    EXPECT_EQ(ended.status, 1) << "this server runs with fsync=off: " << ended.out;
    EXPECT_NE(ended.out.find("fsync is off"), std::string::npos) << ended.out;
}

TEST_F(PostgresRun, CommandsWorkWithAdvisoryLocks) {
    auto url = server.url();
    url.insert(url.find(':'), "+advisory");
    const auto by_locks = [&](const std::vector<std::string>& words) {
        return process(dibs_at(url, words)).wait();
    };
    auto ended = by_locks({"run", "k", "--", "sh", "-c", "echo $DIBS_FENCE"});
    ASSERT_EQ(ended.status, 0) << ended.err;
    EXPECT_GT(std::stoull(ended.out), 1'600'000'000'000'000ULL);
    ended = by_locks({"once", "job", "--slot", "today", "--", "echo", "worked"});
    EXPECT_EQ(ended.status, 0) << ended.err;
    EXPECT_EQ(ended.out, "worked\n");
    EXPECT_EQ(by_locks({"once", "job", "--slot", "today", "--", "echo", "worked"}).out, "");
    EXPECT_NE(by_locks({"runs", "job"}).out.find("done"), std::string::npos);
    const auto detached = by_locks({"acquire", "scripted", "--ttl", "1m"});
    EXPECT_NE(detached.status, 0);
    EXPECT_NE(detached.err.find("cannot outlive this process"), std::string::npos) << detached.err;

    process holder{beating(url, {"--ttl", "1m"})};
    ASSERT_TRUE(eventually([&] { return somebody_beats(); }));
    EXPECT_EQ(by_locks({"run", "k", "--", "true"}).status, 75);
    EXPECT_NE(by_locks({"ls"}).out.find("k"), std::string::npos);
    const auto shown = by_locks({"show", "k"});
    EXPECT_NE(shown.out.find("session"), std::string::npos) << shown.out;
    EXPECT_EQ(by_locks({"doctor"}).status, 1) << "this server runs with fsync=off";
    // Well before the next renewal.
    ASSERT_NE(server.ask("SELECT count(pg_terminate_backend(pid)) FROM pg_locks WHERE locktype = "
                         "'advisory' AND objsubid = 1"),
              "0");
    const auto lost = holder.wait();
    EXPECT_EQ(lost.status, 79) << lost.err;
    EXPECT_EQ(by_locks({"run", "k", "--", "true"}).status, 0);
    EXPECT_EQ(by_locks({"bench", "--seconds", "1", "--callers", "4"}).status, 0);
    EXPECT_EQ(by_locks({"demo", "duplicate-jobs"}).status, 0);
    // Nothing is left: neither sessions nor locks.
    EXPECT_TRUE(eventually([&] {
        return server.ask(
                   "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE "
                   "'dibs %'") == "0";
    }));
    EXPECT_EQ(server.ask("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"), "0");
}

TEST_F(PostgresRun, AWaiterRunsWhenTheHolderIsDone) {
    process holder{dibs_at(server.url(), {"run", "k", "--", "sh", "-c", "read line <&0; sleep 1"})};
    ASSERT_TRUE(eventually([&] { return dibs({"ls"}).out.find("k") != std::string::npos; }));
    for (const auto* order : {"race", "queue"}) {
        std::vector<std::string> words{"run", "k", "--wait", "20s"};
        if (order == std::string{"queue"}) {
            words.emplace_back("--queue");
        }
        words.insert(words.end(), {"--", "echo", order});
        const auto ended = dibs(words);
        EXPECT_EQ(ended.status, 0) << ended.err;
        EXPECT_EQ(ended.out, std::string{order} + "\n");
    }
    EXPECT_EQ(holder.wait().status, 0);
}

TEST_F(PostgresRun, ACommandOutlivesARestartOfTheServer) {
    process first{beating(server.url(), {"--ttl", "6s"})};
    ASSERT_TRUE(eventually([&] { return somebody_beats(); })) << first.err();
    ASSERT_TRUE(server.restart());
    const auto before = read_beats(here.file("beats")).size();
    // Renewed on a new connection: it is still at work when the ttl of before is over.
    const auto until = boottime_ns() + 7'000'000'000;
    ASSERT_TRUE(eventually([&] { return boottime_ns() > until || first.ended(); }));
    EXPECT_FALSE(first.ended()) << first.err();
    EXPECT_GT(read_beats(here.file("beats")).size(), before);
    EXPECT_EQ(dibs({"run", "k", "--", "true"}).status, 75);
    first.signal(SIGTERM);
    first.wait();
}

TEST_F(PostgresRun, AHolderWhoseServerStaysAwayIsStoppedBeforeItsLeaseEnds) {
    process first{beating(server.url(), {"--ttl", "3s"})};
    ASSERT_TRUE(eventually([&] { return somebody_beats(); })) << first.err();
    server.crash();
    EXPECT_EQ(first.wait().status, 79) << first.err();
    ASSERT_TRUE(server.start());
    const auto last = read_beats(here.file("beats")).back();
    const auto next = dibs({"run", "k", "--wait", "20s", "--", "sh", "-c", "echo $DIBS_FENCE"});
    ASSERT_EQ(next.status, 0) << next.err;
    EXPECT_GT(std::stoull(next.out), last.fence);
}

TEST_F(PostgresRun, AHolderThatIsCutOffStopsBeforeTheNextOneStarts) {
    relay line{std::to_string(server.port())};
    const auto through = "postgres://postgres@127.0.0.1:" + std::to_string(line.port()) +
                         "/postgres?sslmode=disable&gssencmode=disable";
    process first{beating(through, {"--ttl", "3s"})};
    ASSERT_TRUE(eventually([&] { return somebody_beats(); })) << first.err();
    line.swallow_all();
    process second{beating(server.url(), {"--ttl", "3s", "--wait", "20s"})};
    EXPECT_EQ(first.wait().status, 79) << first.err();
    const auto fence = read_beats(here.file("beats")).front().fence;
    ASSERT_TRUE(eventually([&] { return read_beats(here.file("beats")).back().fence != fence; }))
        << second.err();
    second.signal(SIGTERM);
    second.wait();
    bool handed_over = false;
    for (const auto& one : read_beats(here.file("beats"))) {
        handed_over = handed_over || one.fence != fence;
        EXPECT_EQ(one.fence != fence, handed_over) << "the first one worked beside the second";
    }
}

TEST_F(PostgresRun, WhatIsInTheWayHasItsStatus) {
    EXPECT_EQ(process(dibs_at(server.url("postgres", "nobody"), {"run", "k", "--", "true"}))
                  .wait()
                  .status,
              78);
    EXPECT_EQ(process(dibs_at("postgres://h/d?schema=", {"run", "k", "--", "true"})).wait().status,
              78);
    server.stop();
    const auto begun = boottime_ns();
    const auto ended = dibs({"run", "k", "--", "touch", here.file("ran")});
    EXPECT_EQ(ended.status, 69) << ended.err;
    EXPECT_LT(boottime_ns() - begun, 10'000'000'000);
    EXPECT_FALSE(exists(here.file("ran")));
}

TEST_F(PostgresRun, ACommandBehindAPoolerIsNotDisturbedByItsPool) {
    if (!has_pgbouncer()) {
        GTEST_SKIP() << "no PgBouncer here";
    }
    const pgbouncer pooler{server};
    process first{beating(pooler.url(), {"--ttl", "3s"})};
    ASSERT_TRUE(eventually([&] { return somebody_beats(); })) << first.err();
    EXPECT_EQ(pooler.command("RECONNECT"), "");
    const auto until = boottime_ns() + 4'000'000'000;
    ASSERT_TRUE(eventually([&] { return boottime_ns() > until || first.ended(); }));
    EXPECT_FALSE(first.ended()) << first.err();
    process second{dibs_at(pooler.url(), {"run", "k", "--wait", "20s", "--", "echo", "second"})};
    first.signal(SIGTERM);
    first.wait();
    const auto ended = second.wait();
    EXPECT_EQ(ended.status, 0) << ended.err;
    EXPECT_EQ(ended.out, "second\n");
}

}  // namespace dibs::testing
