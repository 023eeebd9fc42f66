// SPDX-License-Identifier: Apache-2.0
// Goal: what a connection remembers of the file never differs from what is there. Method: several
// store objects and a plain connection that edits rows take turns on one file, with a disk that
// fails now and then and holders that die; each answer is compared with the rules applied to a
// model. A row remembered for too long shows as a second holder or a wrong fence.

#include "failing_disk.hpp"
#include "store/record/rules.hpp"
#include "store/sqlite/database.hpp"
#include "store/sqlite/row_state.hpp"
#include "support/manual_store_clock.hpp"
#include "support/pumped_environment.hpp"
#include "support/temporary_folder.hpp"
#include "support/verbs.hpp"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace dibs::testing {

namespace {

using namespace std::chrono_literals;
using core::effect;
using core::verdict;
using store::sqlite::database;
using store::sqlite::process_id;

/// The world of all store objects: one clock, and who is dead.
class shared_world final : public store::sqlite::surroundings {
  public:
    [[nodiscard]] core::store_now clock() override { return store_clock.now(); }
    [[nodiscard]] core::instant now() override { return time.now(); }
    void pause(core::microseconds) override {}
    [[nodiscard]] bool gone(const process_id& process) override { return dead.contains(process); }
    [[nodiscard]] store::sqlite::failure appear() override { return {}; }
    [[nodiscard]] std::uint64_t draw() override { return 0; }

    manual_store_clock store_clock;
    boot_time time;
    std::set<process_id> dead;
};

struct nobody final : store::parties {
    [[nodiscard]] core::party who(std::uint64_t) const override { return {}; }
};

/// A connection that knows nothing of dibs.
class editor {
  public:
    explicit editor(const std::string& path) {
        EXPECT_EQ(sqlite3_open(path.c_str(), &db_), SQLITE_OK);
    }
    ~editor() { sqlite3_close(db_); }
    editor(const editor&) = delete;
    editor& operator=(const editor&) = delete;

    void run(const std::string& text) {
        ASSERT_EQ(sqlite3_exec(db_, text.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
            << text << ": " << sqlite3_errmsg(db_);
    }
    void set_state(const std::string& key, const store::sqlite::state_bytes& state) {
        std::string hex;
        for (const auto byte : state) {
            constexpr auto digits = "0123456789abcdef";
            hex += digits[std::to_integer<unsigned>(byte) >> 4];
            hex += digits[std::to_integer<unsigned>(byte) & 15];
        }
        run("UPDATE record SET state = x'" + hex + "' WHERE key = '" + key + "'");
    }

  private:
    sqlite3* db_ = nullptr;
};

class SqliteCache : public ::testing::Test {
  protected:
    struct member {
        process_id id;
        std::uint64_t number = 0;  ///< in the model
        std::unique_ptr<database> file;
        std::set<std::string> waits;
    };

    [[nodiscard]] std::string path() const { return (folder_.path() / "dibs.sqlite").string(); }

    member open() {
        member made;
        made.number = ++members_;
        made.id = holder_of(1'000'000 + made.number);
        store::sqlite::database_options options;
        options.path = path();
        options.vfs = failing_disk::name;
        options.boot_id = "boot";
        options.self = made.id;
        store::sqlite::failure trouble;
        made.file = database::open(std::move(options), world_, trouble);
        EXPECT_TRUE(made.file) << trouble.detail;
        return made;
    }

    store::answers run(member& through, const std::vector<core::verb>& steps) {
        std::vector<core::entry> entries;
        for (const auto& step : steps) {
            entries.push_back({step, world_.now() + 10s});
        }
        store::answers replies(entries.size());
        store::sqlite::group work;
        work.batches.push_back({store::lane::others, entries, replies});
        store::sqlite::aftermath after;
        through.file->run(work, after);
        return replies;
    }

    bool enrol(member& through, const std::string& key, bool begins) {
        store::sqlite::enrolment wish;
        wish.key = key;
        wish.begins = begins;
        wish.deadline = world_.now() + 10s;
        store::sqlite::group work;
        work.enrolments.push_back(&wish);
        store::sqlite::aftermath after;
        through.file->run(work, after);
        return !wish.trouble;
    }

    failing_disk disk_;
    temporary_folder folder_;
    shared_world world_;
    std::uint64_t members_ = 0;
};

TEST_F(SqliteCache, AnEditBetweenTwoStepsIsSeen) {
    auto ours = open();
    editor other{path()};
    ASSERT_EQ(run(ours, {acquire_of("k", holder_of(1))}).front().what, verdict::granted);
    ASSERT_EQ(run(ours, {renew_of("k", holder_of(1))}).front().what, verdict::renewed);
    other.set_state("k", store::sqlite::pack(7, nullptr, 0));
    EXPECT_EQ(run(ours, {renew_of("k", holder_of(1))}).front().what, verdict::not_held);
    other.run("DELETE FROM record");
    EXPECT_EQ(run(ours, {acquire_of("k", holder_of(2))}).front().what, verdict::granted);
    EXPECT_EQ(run(ours, {acquire_of("k", holder_of(3))}).front().what, verdict::held);
}

TEST_F(SqliteCache, AListingInBetweenDoesNotHideAnEdit) {
    auto ours = open();
    editor other{path()};
    ASSERT_EQ(run(ours, {acquire_of("k", holder_of(1))}).front().what, verdict::granted);
    other.set_state("k", store::sqlite::pack(7, nullptr, 0));
    core::page page;
    ours.file->list("", "", 10, page);
    EXPECT_EQ(run(ours, {renew_of("k", holder_of(1))}).front().what, verdict::not_held);
}

TEST_F(SqliteCache, WhatAFailedTransactionWroteIsForgotten) {
    auto ours = open();
    std::vector<core::verb> grants;
    for (std::uint64_t at = 0; at < 64; ++at) {
        grants.emplace_back(acquire_of("k" + std::to_string(at), holder_of(at + 1)));
    }
    for (const auto& told : run(ours, grants)) {
        ASSERT_EQ(told.what, verdict::granted);
    }
    std::vector<core::verb> ends;
    for (std::uint64_t at = 0; at < 64; ++at) {
        ends.emplace_back(release_of("k" + std::to_string(at), holder_of(at + 1)));
    }
    auto marked = acquire_of("marked", holder_of(99));
    marked.mark = result_of("begun", 1h, 1h);
    ends.emplace_back(marked);
    failing_disk::broken = true;
    for (const auto& told : run(ours, ends)) {
        ASSERT_EQ(told.took, effect::unknown);
    }
    failing_disk::broken = false;
    for (std::uint64_t at = 0; at < 64; ++at) {
        EXPECT_EQ(run(ours, {acquire_of("k" + std::to_string(at), holder_of(1000))}).front().what,
                  verdict::held)
            << "a release that was undone lets nobody in";
    }
}

TEST_F(SqliteCache, ADeathIsSeenAlthoughTheRowIsRemembered) {
    auto ours = open();
    auto other = open();
    ASSERT_EQ(run(other, {acquire_of("k", holder_of(1))}).front().what, verdict::granted);
    for (int at = 0; at < 2; ++at) {
        ASSERT_EQ(run(ours, {acquire_of("k", holder_of(2))}).front().what, verdict::held);
    }
    world_.dead.insert(other.id);
    EXPECT_EQ(run(ours, {acquire_of("k", holder_of(2))}).front().what, verdict::granted);
}

TEST_F(SqliteCache, RowsThatChangeByTheWayAreForgotten) {
    auto ours = open();
    auto other = open();
    for (const auto* key : {"first", "second"}) {
        ASSERT_TRUE(enrol(other, key, true));
        const auto told = run(ours, {acquire_of(key, holder_of(1))}).front();
        ASSERT_EQ(told.what, verdict::granted);
        ASSERT_TRUE(told.waiters);
    }
    ASSERT_TRUE(run(ours, {renew_of("second", holder_of(1))}).front().waiters);
    // A dead waiter of one key is found, and its row for the other one goes as well.
    world_.dead.insert(other.id);
    constexpr std::uint64_t number_of_other = 1;  // the first that entered itself
    store::sqlite::group work;
    work.lost.push_back({"first", {number_of_other}, false});
    store::sqlite::aftermath after;
    ours.file->run(work, after);
    ASSERT_EQ(after.buried.size(), 1U);
    EXPECT_FALSE(run(ours, {renew_of("second", holder_of(1))}).front().waiters);
}

/// One random run.
class SqliteCacheRun : public SqliteCache, public ::testing::WithParamInterface<unsigned> {
  protected:
    static constexpr std::size_t keys = 7;
    static constexpr std::uint64_t holders = 5;

    std::size_t below(std::size_t end) {
        return std::uniform_int_distribution<std::size_t>{0, end - 1}(random_);
    }
    std::string some_key() { return "key-" + std::to_string(below(keys)); }
    core::holder_id some_holder() { return holder_of(1 + below(holders)); }
    core::microseconds some_ttl() { return core::milliseconds{50 + below(400)}; }

    core::verb some_verb() {
        const auto key = some_key();
        switch (below(12)) {
            case 0: {
                auto asked = shared_acquire_of(key, some_holder(), 1, 3);
                asked.ttl = some_ttl();
                return asked;
            }
            case 1: {
                auto asked = acquire_of(key, some_holder(), some_ttl());
                asked.mark = result_of("mark", 0ms, core::milliseconds{below(100)});
                return asked;
            }
            case 2: {
                const auto kept = core::milliseconds{below(100)};
                return finish_of(
                    key, some_holder(), result_of("result", kept, kept), below(2) == 0);
            }
            case 3:
                return block_of(key, core::milliseconds{below(40)}, "maintenance");
            case 4:
                return revoke_of(key, model_[key].fence);
            case 5: {
                auto asked = renew_of(key, some_holder(), some_ttl());
                asked.adopt = core::renew::change{some_holder(), core::attachment::detached};
                return asked;
            }
            case 6:
            case 7:
                return release_of(key, some_holder());
            case 8:
            case 9:
                return renew_of(key, some_holder(), some_ttl());
            default:
                return acquire_of(key, some_holder(), some_ttl());
        }
    }

    void mark_dead() {
        for (auto& [key, record] : model_) {
            for (auto& grant : record.grants) {
                grant.dead = grant.dead || (grant.attached == core::attachment::attached &&
                                            dead_numbers_.contains(grant.process));
            }
        }
    }

    std::size_t waiting(const std::string& key) {
        return static_cast<std::size_t>(std::count_if(
            all_.begin(), all_.end(), [&](const member& one) { return one.waits.contains(key); }));
    }

    void compare(member& through, const core::verb& what, const core::answer& told) {
        const auto& key = core::key_of(what);
        if (told.took != effect::yes) {
            // Refused by the rules (then the model refuses, too), or undone with its transaction.
            if (told.error == errc::capacity_differs || told.error == errc::invalid_argument) {
                auto copy = model_[key];
                const auto wanted = store::apply(what, copy, context(through));
                EXPECT_EQ(wanted.reply.error, told.error) << key;
            } else {
                EXPECT_TRUE(failed_) << told.detail;
            }
            return;
        }
        const auto wanted = store::apply(what, model_[key], context(through)).reply;
        EXPECT_EQ(wanted.what, told.what) << key;
        EXPECT_EQ(wanted.fences, told.fences) << key;
        EXPECT_EQ(wanted.expires, told.expires) << key;
        EXPECT_EQ(wanted.lost, told.lost) << key;
        EXPECT_EQ(wanted.holders.size(), told.holders.size()) << key;
        EXPECT_EQ(wanted.result.has_value(), told.result.has_value()) << key;
        EXPECT_EQ(told.waiters, waiting(key) != 0) << key;
    }

    store::rules_context context(const member& through) {
        return {world_.clock(), through.number, nobody_};
    }

    void batch() {
        auto& through = all_[below(all_.size())];
        std::vector<core::verb> steps;
        for (std::size_t left = below(2) == 0 ? 1 : 1 + below(6); left > 0; --left) {
            steps.push_back(some_verb());
        }
        failed_ = true;
        switch (below(16)) {
            case 0:
                failing_disk::broken = true;
                break;
            case 1:
            case 2:
                failing_disk::writes_left = static_cast<int>(below(4));
                break;
            default:
                failed_ = false;
        }
        const auto told = run(through, steps);
        failing_disk::broken = false;
        failing_disk::writes_left = failing_disk::unlimited;
        const auto first = [](const core::verb& what) {
            return std::holds_alternative<core::renew>(what) ||
                   std::holds_alternative<core::release>(what);
        };
        for (const bool which : {true, false}) {
            for (std::size_t at = 0; at < steps.size(); ++at) {
                if (first(steps[at]) == which) {
                    compare(through, steps[at], told[at]);
                }
            }
        }
    }

    void edit() {
        const auto key = some_key();
        auto& record = model_[key];
        switch (below(4)) {
            case 0:
                editor_->run("PRAGMA wal_checkpoint(TRUNCATE)");
                return;
            case 1:
                if (waiting(key) != 0) {
                    return;
                }
                for (const auto* table : {"result", "hold", "further_grant"}) {
                    editor_->run("DELETE FROM " + std::string{table} +
                                 " WHERE record IN (SELECT id FROM record WHERE key = '" + key +
                                 "')");
                }
                editor_->run("DELETE FROM record WHERE key = '" + key + "'");
                record = {};
                return;
            default:
                if (record.grants.size() > 1 || record.fence == 0) {
                    return;
                }
                record.fence += 1 + below(3);
                record.grants.clear();
                if (below(2) == 0) {
                    core::grant foreign;
                    foreign.holder = some_holder();
                    foreign.fences = {record.fence, record.fence};
                    foreign.weight = record.capacity;
                    foreign.attached = core::attachment::detached;
                    foreign.granted = world_.clock().lease;
                    foreign.expires = foreign.granted + some_ttl();
                    record.grants.push_back(foreign);
                }
                editor_->set_state(
                    key,
                    store::sqlite::pack(
                        record.fence, record.grants.empty() ? nullptr : &record.grants.front(), 1));
        }
    }

    void wait_or_stop() {
        auto& through = all_[below(all_.size())];
        const auto key = some_key();
        const bool begins = !through.waits.contains(key);
        ASSERT_TRUE(enrol(through, key, begins));
        begins ? void(through.waits.insert(key)) : void(through.waits.erase(key));
    }

    void die() {
        auto& one = all_[below(all_.size())];
        if (!one.waits.empty()) {
            return;
        }
        world_.dead.insert(one.id);
        dead_numbers_.insert(one.number);
        one = open();
    }

    std::mt19937 random_;
    nobody nobody_;
    std::map<std::string, core::record> model_;
    std::set<std::uint64_t> dead_numbers_;
    std::vector<member> all_;
    std::unique_ptr<editor> editor_;
    bool failed_ = false;
};

TEST_P(SqliteCacheRun, AnswersAreThoseOfTheRules) {
    random_.seed(GetParam());
    failing_disk::only_cache = true;
    for (int at = 0; at < 3; ++at) {
        all_.push_back(open());
    }
    editor_ = std::make_unique<editor>(path());
    for (int step = 0; step < 3000 && !HasFailure(); ++step) {
        SCOPED_TRACE("step " + std::to_string(step));
        mark_dead();
        const auto drawn = below(100);
        if (drawn < 78) {
            batch();
        } else if (drawn < 86) {
            edit();
        } else if (drawn < 94) {
            wait_or_stop();
        } else if (drawn < 97) {
            core::page page;
            all_[below(all_.size())].file->list("", "", 100, page);
            EXPECT_FALSE(page.error) << page.detail;
        } else if (drawn < 98) {
            die();
        }
        if (below(3) == 0) {
            world_.store_clock.advance(core::milliseconds{below(60)});
        }
    }
    EXPECT_LT(world_.clock().lease, core::store_instant{5h + 10min}) << "records were purged";
}

INSTANTIATE_TEST_SUITE_P(Seeds, SqliteCacheRun, ::testing::Range(1U, 9U));

}  // namespace

}  // namespace dibs::testing
