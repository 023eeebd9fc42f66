// SPDX-License-Identifier: Apache-2.0
// Goal: a commit that fails is told as what it is, and the file does not grow by records that
// nobody needs. Method: the database alone, without threads, on a clock and a disk of the test.

#include "failing_disk.hpp"
#include "store/sqlite/database.hpp"
#include "support/manual_store_clock.hpp"
#include "support/pumped_environment.hpp"
#include "support/temporary_folder.hpp"
#include "support/verbs.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace dibs::testing {

namespace {

using namespace std::chrono_literals;
using store::sqlite::database;

class test_surroundings final : public store::sqlite::surroundings {
  public:
    [[nodiscard]] core::store_now clock() override { return store_clock.now(); }
    [[nodiscard]] core::instant now() override { return time.now(); }
    void pause(core::microseconds) override {}
    [[nodiscard]] bool gone(const store::sqlite::process_id&) override { return false; }
    [[nodiscard]] store::sqlite::failure appear() override { return {}; }
    [[nodiscard]] std::uint64_t draw() override { return 0; }

    manual_store_clock store_clock;
    boot_time time;
};

class SqliteDatabase : public ::testing::Test {
  protected:
    void SetUp() override {
        store::sqlite::database_options options;
        options.path = (folder_.path() / "dibs.sqlite").string();
        options.vfs = failing_disk::name;
        options.boot_id = "boot";
        options.self = holder_of(99);
        store::sqlite::failure trouble;
        file_ = database::open(std::move(options), world_, trouble);
        ASSERT_TRUE(file_) << trouble.detail;
    }

    store::answers run(std::vector<core::verb> steps) {
        std::vector<core::entry> entries;
        for (auto& step : steps) {
            entries.push_back({std::move(step), world_.now() + 10s});
        }
        store::answers replies(entries.size());
        store::sqlite::group work;
        work.batches.push_back({store::lane::others, entries, replies});
        store::sqlite::aftermath after;
        file_->run(work, after);
        return replies;
    }

    std::size_t records() {
        core::page page;
        file_->list("", "", 100'000, page);
        EXPECT_FALSE(page.error) << page.detail;
        return page.records.size();
    }

    failing_disk disk_;
    temporary_folder folder_;
    test_surroundings world_;
    std::unique_ptr<database> file_;
};

TEST_F(SqliteDatabase, ACommitWhoseSyncFailsIsInDoubtAndWhatWroteNothingIsNot) {
    ASSERT_EQ(run({acquire_of("held", holder_of(1))}).front().what, core::verdict::granted);
    auto marked = acquire_of("marked", holder_of(2));
    marked.mark = result_of("begun", 1h, 1h);
    failing_disk::broken = true;
    const auto told = run({marked, acquire_of("held", holder_of(3))});
    EXPECT_EQ(told[0].what, core::verdict::failed);
    EXPECT_EQ(told[0].took, core::effect::unknown);
    EXPECT_EQ(told[0].error, errc::outcome_unknown);
    EXPECT_FALSE(told[0].detail.empty());
    EXPECT_EQ(told[1].took, core::effect::no);

    failing_disk::broken = false;
    const auto again = run({marked, renew_of("held", holder_of(1))});
    EXPECT_EQ(again[0].what, core::verdict::granted) << "the same holder finds out by asking again";
    EXPECT_EQ(again[1].what, core::verdict::renewed) << "nothing else was lost";
}

TEST_F(SqliteDatabase, OnlyWhatMustSurvivePowerLossWaitsForTheDisk) {
    ASSERT_EQ(run({acquire_of("k", holder_of(1))}).front().what, core::verdict::granted);
    failing_disk::broken = true;
    EXPECT_EQ(run({renew_of("k", holder_of(1))}).front().what, core::verdict::renewed)
        << "a bare renewal needs no sync";
    EXPECT_EQ(run({block_of("other", 1h, "maintenance")}).front().took, core::effect::unknown);
    EXPECT_EQ(run({finish_of("k", holder_of(1), result_of("outcome", 1h, 1h))}).front().took,
              core::effect::unknown);
    failing_disk::broken = false;
    EXPECT_EQ(run({finish_of("k", holder_of(1), result_of("outcome", 1h, 1h))}).front().what,
              core::verdict::finished);
}

TEST_F(SqliteDatabase, RecordsThatNobodyNeedsAreForgottenInSmallSteps) {
    constexpr std::uint64_t many = 200;
    for (std::uint64_t at = 1; at <= many; ++at) {
        const auto key = "slot/" + std::to_string(at);
        ASSERT_EQ(run({acquire_of(key, holder_of(at))}).front().what, core::verdict::granted);
        const auto end = at % 4 == 0
                             ? core::verb{finish_of(key, holder_of(at), result_of("kept", 1h, 48h))}
                             : core::verb{release_of(key, holder_of(at))};
        ASSERT_EQ(run({end}).front().took, core::effect::yes);
    }
    ASSERT_EQ(records(), many);
    world_.store_clock.advance(2h);
    ASSERT_EQ(run({acquire_of("live", holder_of(1000), 24h * 20)}).front().what,
              core::verdict::granted);
    const auto step = [&] { run({renew_of("live", holder_of(1000), 24h * 20)}); };
    step();
    EXPECT_GT(records(), many / 2) << "not all at once";
    for (int at = 0; at < 600; ++at) {
        step();
    }
    EXPECT_EQ(records(), many / 4 + 1) << "kept results and live leases stay";
    world_.store_clock.advance(47h);
    for (int at = 0; at < 600; ++at) {
        step();
    }
    EXPECT_EQ(records(), 1U) << "results go when they need not be kept any longer";
}

TEST_F(SqliteDatabase, FencesOutliveTheRecordThatHadThem) {
    const auto before = run({acquire_of("k", holder_of(1))}).front().fences.last;
    ASSERT_EQ(run({release_of("k", holder_of(1))}).front().what, core::verdict::released);
    world_.store_clock.advance(1h);
    for (std::uint64_t at = 0; at < 512; ++at) {
        run({acquire_of("other", holder_of(2))});
    }
    ASSERT_EQ(records(), 1U);
    EXPECT_GT(run({acquire_of("k", holder_of(3))}).front().fences.last, before);
}

TEST_F(SqliteDatabase, ARecordWhoseFenceIsAheadOfTheCalendarStays) {
    ASSERT_EQ(run({acquire_of("k", holder_of(1))}).front().what, core::verdict::granted);
    const auto before = run({acquire_of("k", holder_of(1))}).front().fences.last;
    ASSERT_EQ(run({release_of("k", holder_of(1))}).front().what, core::verdict::released);
    world_.store_clock.step_wall(-24h);
    world_.store_clock.advance(2h);
    for (std::uint64_t at = 0; at < 512; ++at) {
        run({acquire_of("other", holder_of(2))});
    }
    EXPECT_EQ(records(), 2U);
    EXPECT_GT(run({acquire_of("k", holder_of(3))}).front().fences.last, before);
}

}  // namespace

}  // namespace dibs::testing
