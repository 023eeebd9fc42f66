// SPDX-License-Identifier: Apache-2.0
// The lease cannot be renewed: the child is stopped before it can end, whatever the child does
// about it.
#include "support.hpp"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <csignal>
#include <string>

namespace dibs::testing {
namespace {

/// Holds the write lock of a SQLite file, so that no renewal gets through.
class stuck_store {
  public:
    explicit stuck_store(const std::string& path) {
        EXPECT_EQ(::sqlite3_open(path.c_str(), &database_), SQLITE_OK);
        ::sqlite3_busy_timeout(database_, 5'000);
        EXPECT_EQ(::sqlite3_exec(database_, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr),
                  SQLITE_OK);
    }
    ~stuck_store() {
        ::sqlite3_exec(database_, "ROLLBACK", nullptr, nullptr, nullptr);
        ::sqlite3_close(database_);
    }
    stuck_store(const stuck_store&) = delete;
    stuck_store& operator=(const stuck_store&) = delete;

  private:
    sqlite3* database_ = nullptr;
};

/// As an operator's hand, or a restored backup: the store knows of no grant any more.
void forget_everything(const std::string& path) {
    sqlite3* database = nullptr;
    ASSERT_EQ(::sqlite3_open(path.c_str(), &database), SQLITE_OK);
    ::sqlite3_busy_timeout(database, 5'000);
    EXPECT_EQ(::sqlite3_exec(database, "DELETE FROM record", nullptr, nullptr, nullptr), SQLITE_OK)
        << ::sqlite3_errmsg(database);
    ::sqlite3_close(database);
}

TEST(RunStop, ALostLeaseStopsTheChildAtOnce) {
    const folder here;
    process running(dibs_on(here,
                            {"run",
                             "--ttl",
                             "9s",
                             "--status-file",
                             "s.json",
                             "k",
                             "sh",
                             "-c",
                             "echo ready; exec sleep 300"}));
    ASSERT_TRUE(eventually([&] { return running.out() == "ready\n"; })) << running.err();
    const auto from = boottime_ns();
    forget_everything(here.file("locks.db"));
    const auto found = running.wait();
    EXPECT_EQ(found.status, 79) << found.err;
    EXPECT_NE(found.err.find("was lost: "), std::string::npos) << found.err;
    // Told by the next renewal, a third of the ttl later; the deadline is far.
    EXPECT_LT(boottime_ns() - from, 6'500'000'000);
    EXPECT_NE(read_file(here.file("s.json")).find("\"outcome\": \"lost\""), std::string::npos);
}

TEST(RunStop, AChildThatEndsWellAfterTheLeaseWasLostUnnoticedIsNoSuccess) {
    const folder here;
    ASSERT_EQ(::mkfifo(here.file("gate").c_str(), 0600), 0);
    process running(dibs_on(
        here, {"run", "--ttl", "1h", "k", "sh", "-c", "echo ready; read x < gate; exit 0"}));
    ASSERT_TRUE(eventually([&] { return running.out() == "ready\n"; })) << running.err();
    forget_everything(here.file("locks.db"));
    write_file(here.file("gate"), "go\n");
    const auto found = running.wait();
    EXPECT_EQ(found.status, 79) << found.err;
    EXPECT_NE(found.err.find("before the command had ended"), std::string::npos) << found.err;
}

TEST(RunStop, AStuckStoreStopsEvenAStubbornGroupBeforeTheLeaseCanEnd) {
    const folder here;
    const auto log = here.file("beats");
    const auto beat = child_program() + " beat " + log + " stubborn";
    process running(dibs_on(here,
                            {"run",
                             "--ttl",
                             "2s",
                             "--status-file",
                             "s.json",
                             "k",
                             "sh",
                             "-c",
                             beat + " & " + beat + " & trap '' TERM; wait; wait; sleep 300"}));
    ASSERT_TRUE(eventually([&] { return read_beats(log).size() > 10; })) << running.err();
    std::int64_t stuck_at = 0;
    outcome found;
    {
        const stuck_store stuck(here.file("locks.db"));
        stuck_at = boottime_ns();
        found = running.wait();
    }
    EXPECT_EQ(found.status, 79) << found.err;
    EXPECT_NE(found.err.find("\"k\""), std::string::npos) << found.err;
    EXPECT_NE(read_file(here.file("s.json")).find("\"outcome\": \"lost\""), std::string::npos);
    const auto beats = read_beats(log);
    // No renewal can have been sent later than that.
    EXPECT_LT(beats.back().boottime_ns, stuck_at + 2'000'000'000);
    for (const auto& one : beats) {
        EXPECT_FALSE(is_running(one.process));
    }
    EXPECT_TRUE(eventually([&] {
        return run_dibs(here, {"run", "--wait", "5s", "k", "true"}).status == 0;
    }));
}

TEST(RunStop, ReachingTheStopIsFinalEvenWhenTheStoreRecovers) {
    const folder here;
    const auto log = here.file("signals");
    process running(dibs_on(
        here,
        {"run",
         "--ttl",
         "3s",
         "--grace",
         "1s",
         "k",
         "sh",
         "-c",
         "trap 'echo told; sleep 0.3; exit 0' TERM; echo ready; while :; do sleep 0.02; done"}));
    ASSERT_TRUE(eventually([&] { return running.out() == "ready\n"; })) << running.err();
    {
        const stuck_store stuck(here.file("locks.db"));
        ASSERT_TRUE(eventually([&] { return running.out() == "ready\ntold\n"; })) << running.err();
    }
    // The child ended well, and in time; it was stopped all the same.
    EXPECT_EQ(running.wait().status, 79);
}

TEST(RunStop, AStoreThatNeverAnswersIs69AndTheCommandIsNotStarted) {
    const folder here;
    ASSERT_EQ(run_dibs(here, {"run", "k", "true"}).status, 0);
    const stuck_store stuck(here.file("locks.db"));
    const auto from = boottime_ns();
    const auto found = run_dibs(here, {"run", "--status-file", "s.json", "k", "touch", "ran"});
    EXPECT_EQ(found.status, 69) << found.err;
    // Five seconds are promised; the rest is for a busy machine.
    EXPECT_LT(boottime_ns() - from, 10'000'000'000);
    EXPECT_FALSE(exists(here.file("ran")));
    EXPECT_NE(read_file(here.file("s.json")).find("\"outcome\": \"unavailable\""),
              std::string::npos);
}

TEST(RunStop, ASignalEndsARunThatWaitsForAStoreWithoutAnswer) {
    const folder here;
    ASSERT_EQ(run_dibs(here, {"run", "k", "true"}).status, 0);
    const stuck_store stuck(here.file("locks.db"));
    process running(dibs_on(here, {"run", "--wait", "600s", "k", "touch", "ran"}));
    // Once its guard is there, its signals are taken care of.
    ASSERT_TRUE(eventually([&] { return !children_named(running.id(), "dibs-guard").empty(); }));
    const auto from = boottime_ns();
    running.signal(SIGTERM);
    EXPECT_EQ(running.wait().status, 128 + SIGTERM);
    // Sooner than the store's own time-out would end it.
    EXPECT_LT(boottime_ns() - from, 3'000'000'000);
    EXPECT_FALSE(exists(here.file("ran")));
}

TEST(RunStop, AStubbornChildIsKilledAfterItsGrace) {
    const folder here;
    process running(dibs_on(here,
                            {"run",
                             "--max-runtime",
                             "300ms",
                             "--grace",
                             "200ms",
                             "k",
                             child_program(),
                             "beat",
                             here.file("b"),
                             "stubborn"}));
    EXPECT_EQ(running.wait().status, 124);
    EXPECT_FALSE(is_running(read_beats(here.file("b")).back().process));
}

TEST(RunStop, AStoppedChildIsContinuedSoThatItCanEnd) {
    const folder here;
    process running(
        dibs_on(here,
                {"run",
                 "--max-runtime",
                 "500ms",
                 "--ttl",
                 "1h",
                 "--grace",
                 "10m",
                 "k",
                 "sh",
                 "-c",
                 "trap 'exit 3' TERM; echo ready; kill -STOP $$; while :; do sleep 0.02; done"}));
    const auto found = running.wait();
    EXPECT_EQ(found.status, 124) << found.err;
}

TEST(RunStop, WhoLeavesTheGroupIsNotStoppedAndTheFenceTellsWhoIsLate) {
    // The documented limit: only the group is stopped. What is left can be told by its fence.
    const folder here;
    const auto log = here.file("beats");
    process running(dibs_on(here,
                            {"run",
                             "--ttl",
                             "1s",
                             "--no-renew",
                             "k",
                             "sh",
                             "-c",
                             child_program() + " beat " + log + " leave & sleep 300"}));
    EXPECT_EQ(running.wait().status, 79);
    ASSERT_TRUE(eventually([&] { return !read_beats(log).empty(); }));
    const auto left = read_beats(log).front();
    EXPECT_TRUE(is_running(left.process));
    const auto next = run_dibs(here, {"run", "--wait", "20s", "k", "sh", "-c", "echo $DIBS_FENCE"});
    EXPECT_EQ(next.status, 0) << next.err;
    EXPECT_GT(std::stoull(next.out), left.fence);
    ::kill(left.process, SIGKILL);
}

}  // namespace
}  // namespace dibs::testing
