// SPDX-License-Identifier: Apache-2.0
// The wrapper is stopped for longer than the ttl; then wrapper and guard.
#include "support.hpp"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <csignal>
#include <string>

namespace dibs::testing {
namespace {

pid_t guard_of(const process& command) {
    pid_t found = -1;
    EXPECT_TRUE(eventually([&] {
        const auto all = children_named(command.id(), "dibs-guard");
        found = all.empty() ? -1 : all.front();
        return found > 0;
    }));
    return found;
}

/// A resource that refuses older fences, as a row in a database of its own.
class guarded_row {
  public:
    explicit guarded_row(const std::string& path) {
        EXPECT_EQ(::sqlite3_open(path.c_str(), &database_), SQLITE_OK);
        run("CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER, fence INTEGER)");
        run("INSERT INTO account VALUES (1, 100, 0)");
    }
    ~guarded_row() { ::sqlite3_close(database_); }
    guarded_row(const guarded_row&) = delete;
    guarded_row& operator=(const guarded_row&) = delete;

    [[nodiscard]] bool write(std::uint64_t fence, int balance) {
        const auto number = std::to_string(fence);
        run("UPDATE account SET balance = " + std::to_string(balance) + ", fence = " + number +
            " WHERE id = 1 AND fence <= " + number);
        return ::sqlite3_changes(database_) == 1;
    }

  private:
    void run(const std::string& statement) {
        EXPECT_EQ(::sqlite3_exec(database_, statement.c_str(), nullptr, nullptr, nullptr),
                  SQLITE_OK)
            << statement;
    }
    sqlite3* database_ = nullptr;
};

TEST(RunFrozen, AStoppedWrapperHasItsChildStoppedInTimeByTheGuard) {
    for (const char* manner : {"", "stubborn"}) {
        const folder here;
        const auto log = here.file("beats");
        std::vector<std::string> words{"run", "--ttl", "2s", "k", child_program(), "beat", log};
        if (*manner != '\0') {
            words.emplace_back(manner);
        }
        process first(dibs_on(here, words));
        ASSERT_TRUE(eventually([&] { return !read_beats(log).empty(); })) << first.err();
        const auto child = read_beats(log).front();
        process second(
            dibs_on(here, {"run", "--wait", "forever", "k", child_program(), "beat", log}));
        first.signal(SIGSTOP);
        const auto stopped_at = boottime_ns();
        EXPECT_TRUE(eventually([&] { return !is_running(child.process); })) << manner;
        EXPECT_TRUE(eventually([&] { return read_beats(log).back().fence > child.fence; }))
            << second.err();
        // Not merely one after the other: the first was gone before its ttl, counted from its last
        // renewal.
        for (const auto& one : read_beats(log)) {
            if (one.fence == child.fence) {
                EXPECT_LT(one.boottime_ns, stopped_at + 2'000'000'000);
            }
        }
        first.signal(SIGCONT);
        const auto end = first.wait();
        EXPECT_EQ(end.status, 79) << end.err;
        second.signal(SIGTERM);
        second.wait();
        EXPECT_EQ(overlap_in(read_beats(log)), "") << manner;
    }
}

TEST(RunFrozen, WithTheGuardFrozenTooTheFenceRefusesTheLateWriter) {
    const folder here;
    const auto log = here.file("beats");
    guarded_row row(here.file("account.db"));
    process first(dibs_on(here, {"run", "--ttl", "1s", "k", child_program(), "beat", log}));
    ASSERT_TRUE(eventually([&] { return !read_beats(log).empty(); })) << first.err();
    const auto child = read_beats(log).front();
    EXPECT_TRUE(row.write(child.fence, 90));
    const auto guard = guard_of(first);
    ::kill(guard, SIGSTOP);
    first.signal(SIGSTOP);
    const auto next = run_dibs(here, {"run", "--wait", "20s", "k", "sh", "-c", "echo $DIBS_FENCE"});
    ASSERT_EQ(next.status, 0) << next.err;
    // Both at work: nothing on this host could prevent it. The data can.
    EXPECT_TRUE(is_running(child.process));
    EXPECT_GT(std::stoull(next.out), child.fence);
    EXPECT_TRUE(row.write(std::stoull(next.out), 80));
    EXPECT_FALSE(row.write(child.fence, 70));
    first.signal(SIGCONT);
    ::kill(guard, SIGCONT);
    EXPECT_EQ(first.wait().status, 79);
    EXPECT_FALSE(is_running(child.process));
}

TEST(RunFrozen, AChildThatEndedWellUnderALostLeaseIsNotASuccess) {
    const folder here;
    // A child that ends by itself at a moment of the test's choice.
    ASSERT_EQ(::mkfifo(here.file("gate").c_str(), 0600), 0);
    process first(dibs_on(
        here, {"run", "--ttl", "1s", "k2", "sh", "-c", "echo ready; read x < gate; exit 0"}));
    ASSERT_TRUE(eventually([&] { return first.out() == "ready\n"; })) << first.err();
    const auto guard = guard_of(first);
    ::kill(guard, SIGSTOP);
    first.signal(SIGSTOP);
    // Somebody else had the key meanwhile, so the lease is over for certain.
    ASSERT_EQ(run_dibs(here, {"run", "--wait", "20s", "k2", "true"}).status, 0);
    write_file(here.file("gate"), "go\n");
    first.signal(SIGCONT);
    ::kill(guard, SIGCONT);
    const auto end = first.wait();
    EXPECT_EQ(end.status, 79) << end.err;
    EXPECT_NE(end.err.find("k2"), std::string::npos);
}

TEST(RunFrozen, AStoppedGuardHoldsUpNothing) {
    const folder here;
    process first(dibs_on(here, {"run", "k", "sh", "-c", "echo ready; exec sleep 300"}));
    ASSERT_TRUE(eventually([&] { return first.out() == "ready\n"; })) << first.err();
    const auto guard = guard_of(first);
    ::kill(guard, SIGSTOP);
    first.signal(SIGTERM);
    EXPECT_EQ(first.wait().status, 128 + SIGTERM);
    EXPECT_FALSE(is_running(guard));
}

}  // namespace
}  // namespace dibs::testing
