// SPDX-License-Identifier: Apache-2.0
// Goal: many processes on one file keep each other out and get on; a locked file delays, and fails
// only at the deadline. Method: real processes, and a plain SQLite connection that holds the write
// lock.

#include "sqlite_peer.hpp"
#include "support/eventually.hpp"
#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <fstream>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace dibs::testing {

namespace {

using namespace std::chrono_literals;

class foreign_writer {
  public:
    explicit foreign_writer(const std::string& file) {
        EXPECT_EQ(sqlite3_open(file.c_str(), &db_), SQLITE_OK);
        // SQLite's own handler sleeps so long between its tries that it starves beside eight
        // processes.
        sqlite3_busy_handler(
            db_,
            [](void*, int times) {
                sqlite3_sleep(1);
                return times < 60'000 ? 1 : 0;
            },
            nullptr);
    }
    ~foreign_writer() { sqlite3_close(db_); }
    foreign_writer(const foreign_writer&) = delete;
    foreign_writer& operator=(const foreign_writer&) = delete;
    void lock() { run("BEGIN IMMEDIATE"); }
    void unlock() { run("ROLLBACK"); }
    void run(const char* text) {
        ASSERT_EQ(sqlite3_exec(db_, text, nullptr, nullptr, nullptr), SQLITE_OK)
            << sqlite3_errmsg(db_);
    }

  private:
    sqlite3* db_ = nullptr;
};

class SqliteContention : public ::testing::Test {
  protected:
    [[nodiscard]] std::string file() const { return (folder_.path() / "dibs.sqlite").string(); }
    temporary_folder folder_;
};

TEST_F(SqliteContention, AForeignWriterDelaysAndDoesNotFail) {
    sqlite_here here{file()};
    ASSERT_TRUE(here.opened()) << here.detail;
    foreign_writer other{file()};
    other.lock();
    const auto begun = here.world().now();
    std::thread later{[&] {
        std::this_thread::sleep_for(300ms);
        other.unlock();
    }};
    const auto told = here.ask(acquire_of("k", holder_of(1)));
    const auto took = here.world().now() - begun;
    later.join();
    EXPECT_EQ(told.what, core::verdict::granted) << told.detail;
    EXPECT_GE(took, 250ms) << "it was locked out";
}

/// Runs tasks in the thread that posts them, and lets a test come between before something is left.
class leaving_executor final : public core::executor {
  public:
    void post(core::task work) override {
        {
            const std::lock_guard lock(mutex_);
            queue_.push_back(std::move(work));
        }
        run_left();
    }
    void leave(core::task work) override {
        before_leaving();
        const std::lock_guard lock(mutex_);
        queue_.push_back(std::move(work));
    }
    void run_left() override {
        for (;;) {
            core::task next;
            {
                const std::lock_guard lock(mutex_);
                if (queue_.empty()) {
                    return;
                }
                next = std::move(queue_.front());
                queue_.pop_front();
            }
            next();
        }
    }

    std::function<void()> before_leaving = [] {};

  private:
    std::mutex mutex_;
    std::deque<core::task> queue_;
};

/// Tells whether a thread of the store has looked at the clock.
class observed_time final : public core::time_source {
  public:
    explicit observed_time(core::time_source& real) : real_(real) {}
    [[nodiscard]] core::instant now() const noexcept override {
        if (std::this_thread::get_id() != home_) {
            others_looked = true;
        }
        return real_.now();
    }
    void arm(core::timer& alarm, core::instant due) override { real_.arm(alarm, due); }
    void disarm(core::timer& alarm) noexcept override { real_.disarm(alarm); }

    mutable std::atomic<bool> others_looked{false};

  private:
    core::time_source& real_;
    const std::thread::id home_ = std::this_thread::get_id();
};

// The worker has a second batch to do, so it leaves the answers to the first; but before it has done
// so a lent thread has taken the second batch and brought its answers. Nobody comes after that.
TEST_F(SqliteContention, WhatTheWorkerLeavesIsToldThoughALentThreadTakesItsWork) {
    pumped_environment world;
    leaving_executor exec;
    std::promise<void> about_to_leave;
    std::promise<void> others_told;
    std::promise<void> first_told;
    std::promise<void> second_told;
    exec.before_leaving = [&, once = false]() mutable {
        if (!std::exchange(once, true)) {
            about_to_leave.set_value();
            others_told.get_future().wait();
        }
    };
    const auto seen = world.view();
    observed_time time{seen.time};
    store::sqlite_options options;
    options.path = file();
    options.who = {"here", ::getpid(), "tester", "test"};
    std::error_code error;
    std::string detail;
    const auto here =
        store::open_sqlite_store({exec, time, seen.random, seen.notices}, options, error, detail);
    ASSERT_TRUE(here) << detail;
    const auto ask = [&](std::uint64_t number, std::function<void()> told) {
        std::vector<core::entry> batch;
        batch.push_back(
            {acquire_of("k" + std::to_string(number), holder_of(number)), world.now() + 60s});
        here->execute(store::lane::others, std::move(batch), [told](const store::answers& given) {
            EXPECT_EQ(given.front().what, core::verdict::granted) << given.front().detail;
            told();
        });
    };
    foreign_writer other{file()};
    other.lock();
    ask(1, [&] { first_told.set_value(); });
    ASSERT_TRUE(eventually([&] { return time.others_looked.load(); })) << "it has begun";
    here->begin_assist();
    ask(2, [&] { second_told.set_value(); });
    other.unlock();
    about_to_leave.get_future().wait();
    EXPECT_TRUE(here->assist());
    here->end_assist();
    others_told.set_value();
    EXPECT_EQ(first_told.get_future().wait_for(20s), std::future_status::ready);
    EXPECT_EQ(second_told.get_future().wait_for(20s), std::future_status::ready);
    here->close();
}

TEST_F(SqliteContention, BeyondTheDeadlineItIsBusyAndSurelyNotDone) {
    sqlite_here here{file()};
    ASSERT_TRUE(here.opened()) << here.detail;
    foreign_writer other{file()};
    other.lock();
    const auto told = here.ask(acquire_of("k", holder_of(1)), 200ms);
    EXPECT_EQ(told.what, core::verdict::failed);
    EXPECT_EQ(told.took, core::effect::no);
    EXPECT_EQ(told.error, errc::store_busy) << told.detail;
    EXPECT_NE(told.detail.find(file()), std::string::npos) << told.detail;
    other.unlock();
    EXPECT_EQ(here.ask(acquire_of("k", holder_of(2))).what, core::verdict::granted)
        << "the refused one was not done later";
}

TEST_F(SqliteContention, AnEntryWithTimeLeftIsNotFailedByOneWithout) {
    sqlite_here here{file()};
    ASSERT_TRUE(here.opened()) << here.detail;
    foreign_writer other{file()};
    other.lock();
    std::vector<core::entry> batch;
    batch.push_back({acquire_of("short", holder_of(1)), here.world().now() + 100ms});
    batch.push_back({acquire_of("long", holder_of(2)), here.world().now() + 20s});
    std::optional<store::answers> told;
    here->execute(store::lane::others, std::move(batch), [&](store::answers given) {
        told = std::move(given);
    });
    std::thread later{[&] {
        std::this_thread::sleep_for(300ms);
        other.unlock();
    }};
    ASSERT_TRUE(here.world().run_until([&] { return told.has_value(); }, 30s));
    later.join();
    EXPECT_EQ((*told)[0].error, errc::store_busy);
    EXPECT_EQ((*told)[0].took, core::effect::no);
    EXPECT_EQ((*told)[1].what, core::verdict::granted) << (*told)[1].detail;
}

TEST_F(SqliteContention, CloseEndsAWaitForTheFile) {
    sqlite_here here{file()};
    ASSERT_TRUE(here.opened()) << here.detail;
    foreign_writer other{file()};
    other.lock();
    std::vector<core::entry> batch;
    batch.push_back({acquire_of("k", holder_of(1)), here.world().now() + 1h});
    std::optional<store::answers> told;
    here->execute(store::lane::others, std::move(batch), [&](store::answers given) {
        told = std::move(given);
    });
    here->close();
    ASSERT_TRUE(told.has_value()) << "answered before close returned";
    EXPECT_EQ(told->front().took, core::effect::no);
    EXPECT_EQ(told->front().error, errc::closed);
    other.unlock();
}

TEST_F(SqliteContention, EightProcessesNeverHoldOneKeyTogetherAndFencesRise) {
    constexpr int processes = 8;
    constexpr int rounds = 200;
    const auto log = (folder_.path() / "log").string();
    {
        sqlite_here maker{
            file()};  // before the foreigners, whose tables would make it somebody else's file
        ASSERT_TRUE(maker.opened()) << maker.detail;
    }
    std::vector<std::unique_ptr<sqlite_peer>> peers;
    for (int at = 0; at < processes; ++at) {
        peers.push_back(std::make_unique<sqlite_peer>(file()));
    }
    // Meanwhile somebody writes tables of its own, and somebody else reads for long.
    foreign_writer noise{file()};
    foreign_writer reader{file()};
    noise.run("CREATE TABLE noise (n INTEGER)");
    reader.run("BEGIN; SELECT count(*) FROM record");
    for (std::size_t at = 0; at < peers.size(); ++at) {
        peers[at]->say("contend " + std::to_string(rounds) + " 4 " + log + std::to_string(at));
    }
    for (int at = 0; at < 100; ++at) {
        noise.run("INSERT INTO noise VALUES (1)");
        std::this_thread::sleep_for(5ms);
    }
    reader.unlock();
    struct stay {
        long long enter;
        long long exit;
        std::uint64_t fence;
    };
    std::map<std::string, std::vector<stay>> stays;
    std::size_t granted = 0;
    for (std::size_t at = 0; at < peers.size(); ++at) {
        ASSERT_EQ(peers[at]->hear(120s), "contended");
        std::ifstream lines{log + std::to_string(at)};
        std::string key;
        for (stay one{}; lines >> key >> one.fence >> one.enter >> one.exit; ++granted) {
            ASSERT_NE(key, "error") << lines.rdbuf();
            stays[key].push_back(one);
        }
    }
    EXPECT_EQ(granted, std::size_t{processes * rounds});
    for (auto& [key, all] : stays) {
        std::sort(all.begin(), all.end(), [](const stay& left, const stay& right) {
            return left.enter < right.enter;
        });
        for (std::size_t at = 1; at < all.size(); ++at) {
            ASSERT_LE(all[at - 1].exit, all[at].enter) << key << ": two holders at once";
            ASSERT_LT(all[at - 1].fence, all[at].fence) << key;
        }
    }
}

}  // namespace

}  // namespace dibs::testing
