// SPDX-License-Identifier: Apache-2.0
// client::once as a user sees it: several clients on one store in memory, real time.
#include "client/recipes/slot_plan.hpp"
#include "client/recipes/slot_run.hpp"

#include <dibs/dibs.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace dibs {
namespace {

using namespace std::chrono_literals;

/// Opened by one thread and waited for by others.
class gate {
  public:
    void open() {
        const std::lock_guard lock(mutex_);
        open_ = true;
        bell_.notify_all();
    }
    void wait() {
        std::unique_lock lock(mutex_);
        ASSERT_TRUE(bell_.wait_for(lock, 60s, [&] { return open_; }));
    }

  private:
    std::mutex mutex_;
    std::condition_variable bell_;
    bool open_ = false;
};

class OnceInCpp : public ::testing::Test {
  protected:
    static std::string fresh_store() {
        static std::atomic<int> last{0};
        return "memory:once-client-" + std::to_string(++last);
    }
    const std::string url = fresh_store();
    client here{url};
    client there{url};
    int runs = 0;
    const once_function count = [this](const once_context&) { ++runs; };
    const once_function fails = [this](const once_context&) {
        ++runs;
        throw std::runtime_error("no paper");
    };
};

TEST_F(OnceInCpp, RunsOnWhoeverComesFirstAndIsDoneForTheOthers) {
    std::vector<once_context> seen;
    const auto result = here.once("job", slot("s"), [&](const once_context& run) {
        seen.push_back(run);
        EXPECT_FALSE(run.stop.stop_requested());
    });
    EXPECT_EQ(result.outcome(), once_outcome::ran);
    EXPECT_TRUE(result.here());
    ASSERT_EQ(seen.size(), 1U);
    EXPECT_EQ(seen[0].job, "job");
    EXPECT_EQ(seen[0].slot, "s");
    EXPECT_EQ(seen[0].attempt, 1U);
    EXPECT_EQ(seen[0].idempotency_key, "job/s");
    EXPECT_GT(seen[0].fence, 0U);
    const auto late = there.once("job", slot("s"), count);
    EXPECT_EQ(late.outcome(), once_outcome::done);
    EXPECT_FALSE(late.here());
    EXPECT_EQ(there.once("job", slot("t"), count).outcome(), once_outcome::ran);
    EXPECT_EQ(runs, 1);
    EXPECT_FALSE(here.inspect("job@s")->kept->is_mark) << "the outcome is kept, not the mark";
}

TEST_F(OnceInCpp, WhileItRunsElsewhereNobodyElseBegins) {
    gate begun;
    gate end;
    std::thread runner([&] {
        const auto result = here.once("job", slot("s"), [&](const once_context&) {
            begun.open();
            end.wait();
        });
        EXPECT_EQ(result.outcome(), once_outcome::ran);
    });
    begun.wait();
    const auto busy = there.once("job", slot("s"), count);
    EXPECT_EQ(busy.outcome(), once_outcome::running);
    ASSERT_FALSE(busy.slots.empty());
    EXPECT_TRUE(busy.slots.back().holder);
    once_options alone;
    alone.overlap = overlap::forbid;
    // The run of before does not forbid it, so it is in nobody's way.
    EXPECT_EQ(there.once("job", slot("t"), count, alone).outcome(), once_outcome::ran);
    end.open();
    runner.join();
    EXPECT_EQ(runs, 1);
}

TEST_F(OnceInCpp, AnExceptionIsAFailureAndFinalWithoutRetries) {
    const auto failed = here.once("job", slot("s"), fails);
    EXPECT_EQ(failed.outcome(), once_outcome::failed);
    ASSERT_TRUE(failed.slots.front().failure);
    EXPECT_THROW(std::rethrow_exception(failed.slots.front().failure), std::runtime_error);
    const auto again = there.once("job", slot("s"), count);
    EXPECT_EQ(again.outcome(), once_outcome::failed);
    EXPECT_FALSE(again.here());
    EXPECT_EQ(runs, 1);
    EXPECT_EQ(here.once("job", slot("t"), count).outcome(), once_outcome::ran)
        << "the next slot is not held up by it";
}

TEST_F(OnceInCpp, WithRetriesItIsTriedAgainAfterTheBackOff) {
    once_options patient;
    patient.retries = 1;
    patient.backoff = 1h;
    const auto failed = here.once("job", slot("s"), fails, patient);
    EXPECT_EQ(failed.outcome(), once_outcome::retry_later);
    EXPECT_EQ(failed.slots.front().retry_after, 1h);
    const auto early = there.once("job", slot("s"), count, patient);
    EXPECT_EQ(early.outcome(), once_outcome::retry_later);
    EXPECT_GT(early.slots.front().retry_after, 50min);
    EXPECT_EQ(runs, 1);
    patient.backoff = 0ms;
    EXPECT_EQ(here.once("job", slot("t"), fails, patient).outcome(), once_outcome::retry_later);
    const auto last = there.once("job", slot("t"), fails, patient);
    EXPECT_EQ(last.outcome(), once_outcome::failed);
    EXPECT_EQ(last.slots.front().attempt, 2U);
}

TEST_F(OnceInCpp, ALeaseThatIsLostStopsTheWorkWhichHasFailedThen) {
    once_options brief;
    brief.ttl = 1s;
    brief.retries = 1;
    brief.backoff = 0ms;
    const auto until_lost = [&](const once_context& run) {
        gate stopped;
        const std::stop_callback on_stop(run.stop, [&] { stopped.open(); });
        EXPECT_TRUE(there.revoke("job@s", run.fence));
        stopped.wait();
    };
    EXPECT_EQ(here.once("job", slot("s"), until_lost, brief).outcome(), once_outcome::lost);
    EXPECT_EQ(here.once("job", slot("s"), until_lost, brief).outcome(), once_outcome::lost);
    const auto late = there.once("job", slot("s"), count, brief);
    EXPECT_EQ(late.outcome(), once_outcome::failed) << "its retry is used up";
    EXPECT_EQ(late.slots.front().attempt, 2U);
    EXPECT_EQ(runs, 0);
}

TEST_F(OnceInCpp, WhoeverIsToldToStopLeavesTheSlotToOthersAtOnce) {
    std::stop_source stop;
    const auto ended = here.once(
        "job",
        slot("s"),
        [&](const once_context& run) {
            stop.request_stop();
            EXPECT_TRUE(run.stop.stop_requested());
            throw std::runtime_error("stopped");
        },
        {},
        stop.get_token());
    EXPECT_EQ(ended.outcome(), once_outcome::interrupted);
    EXPECT_EQ(there.once("job", slot("s"), count).outcome(), once_outcome::ran);
}

TEST_F(OnceInCpp, AtMostOnceIsNotRunAgain) {
    once_options careful;
    careful.at_most_once = true;
    EXPECT_EQ(here.once("job", slot("s"), fails, careful).outcome(), once_outcome::failed);
    EXPECT_EQ(there.once("job", slot("s"), fails, careful).outcome(), once_outcome::failed);
    EXPECT_EQ(runs, 1);
}

TEST_F(OnceInCpp, ByOrderItIsRunAgain) {
    once_options by_order;
    by_order.again = true;
    EXPECT_EQ(here.once("job", slot("s"), fails).outcome(), once_outcome::failed);
    EXPECT_EQ(there.once("job", slot("s"), count).outcome(), once_outcome::failed);
    const auto again = there.once("job", slot("s"), count, by_order);
    EXPECT_EQ(again.outcome(), once_outcome::ran);
    EXPECT_EQ(again.slots.front().attempt, 2U);
    EXPECT_EQ(here.once("job", slot("s"), count).outcome(), once_outcome::done);
}

TEST_F(OnceInCpp, TimesWithoutEndDoNotOverflow) {
    once_options options;
    options.keep = forever;
    options.backoff = forever;
    options.retries = 1;
    EXPECT_EQ(here.once("job", slot("s"), count, options).outcome(), once_outcome::ran);
    EXPECT_EQ(there.once("job", slot("s"), count, options).outcome(), once_outcome::done);
    EXPECT_EQ(runs, 1);
    options.keep = 0ms;
    const auto failed = here.once("job", slot("t"), fails, options);
    EXPECT_EQ(failed.outcome(), once_outcome::retry_later);
    EXPECT_GT(failed.slots.back().retry_after, 24h);
    options.late = forever;
    options.missed = missed::none;
    EXPECT_EQ(here.once("daily", every("day"), count, options).outcome(), once_outcome::ran);
    EXPECT_EQ(there.once("daily", every("day"), count, options).outcome(), once_outcome::done);
    options.early = forever;
    std::error_code error;
    here.once("daily", every("day"), count, options, {}, error);
    EXPECT_EQ(error, errc::invalid_argument);
    EXPECT_EQ(detail::usual_keep(0ms, 1000, forever, forever), detail::as_good_as_forever);
}

TEST_F(OnceInCpp, AHoldPutsItOff) {
    here.hold("job", 1h, "moving house");
    const auto held = there.once("job", slot("s"), count);
    EXPECT_EQ(held.outcome(), once_outcome::on_hold);
    EXPECT_EQ(held.slots.front().reason, "moving house");
    here.lift_hold("job");
    EXPECT_EQ(there.once("job", slot("s"), count).outcome(), once_outcome::ran);
}

TEST_F(OnceInCpp, ASlotOfAnExpressionBearsItsTime) {
    std::string name;
    const auto result = here.once(
        "job", cron("@yearly", "Asia/Tokyo"), [&](const once_context& run) { name = run.slot; });
    EXPECT_EQ(result.outcome(), once_outcome::ran);
    EXPECT_TRUE(name.ends_with("-01-01T00:00[Asia/Tokyo]")) << name;
    EXPECT_EQ(there.once("job", cron("0 0 1 jan *", "Asia/Tokyo"), count).outcome(),
              once_outcome::done)
        << "the same times are the same slots";
    EXPECT_EQ(there.once("job", every("month"), count).outcome(), once_outcome::ran);
    EXPECT_EQ(every(15min).text(), every("900s").text());
    EXPECT_EQ(every(6h).text(), "6h UTC");
}

/// As if it had been run so many slots ago.
void run_before(client& through, int slots_ago) {
    std::string fault;
    const auto plan = recipes::schedule::make("hour", "UTC", fault).value();
    auto at = plan.at(detail::wall_now(), {});
    for (int number = 0; number < slots_ago; ++number) {
        at = plan.before(at);
    }
    detail::slot_terms terms;
    terms.job = "job";
    terms.slot = at.name;
    terms.begin_ms =
        std::chrono::floor<std::chrono::milliseconds>(at.begin.time_since_epoch()).count();
    auto claim = detail::claim_slot(through, terms, {});
    ASSERT_TRUE(claim.granted);
    std::error_code error;
    EXPECT_EQ(detail::finish_slot(
                  through, *claim.granted, terms, claim.mine, detail::run_end::succeeded, 0, error),
              release_outcome::released);
}

TEST_F(OnceInCpp, MissedSlotsRunOldestFirstUpToTheBound) {
    std::vector<std::string> names;
    const once_function note = [&](const once_context& run) { names.push_back(run.slot); };
    once_options all;
    all.missed = missed::all;
    EXPECT_EQ(here.once("new", every("hour"), note, all).slots.size(), 1U)
        << "of a new job nothing was missed";
    names.clear();
    run_before(here, 5);
    all.missed_max = 3;
    const auto result = there.once("job", every("hour"), note, all);
    EXPECT_EQ(result.outcome(), once_outcome::ran);
    EXPECT_EQ(result.slots.size(), 3U);
    // An hour may have passed since.
    EXPECT_TRUE(result.left_out == 2U || result.left_out == 3U) << result.left_out;
    EXPECT_EQ(names.size(), 3U);
    EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
    EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

TEST_F(OnceInCpp, MissedSlotsStopWhereAnotherProcessIsAtOne) {
    run_before(here, 3);
    once_options all;
    all.missed = missed::all;
    gate begun;
    gate end;
    std::thread runner([&] {
        const auto result = here.once(
            "job",
            every("hour"),
            [&](const once_context&) {
                begun.open();
                end.wait();
            },
            all);
        EXPECT_GE(result.slots.size(), 3U);
    });
    begun.wait();
    const auto busy = there.once("job", every("hour"), count, all);
    EXPECT_EQ(busy.slots.size(), 1U);
    EXPECT_FALSE(busy.here());
    EXPECT_TRUE(busy.outcome() == once_outcome::running ||
                busy.outcome() == once_outcome::overlaps);
    end.open();
    runner.join();
    EXPECT_EQ(runs, 0);
}

TEST_F(OnceInCpp, WhatIsWrongIsToldBeforeAnythingIsRun) {
    const auto refused = [&](const schedule& when, once_options options) {
        std::error_code error;
        const auto result = here.once("job", when, count, options, {}, error);
        return error == condition::invalid_argument && result.slots.empty();
    };
    const auto with = [](auto change) {
        once_options made;
        change(made);
        return made;
    };
    EXPECT_TRUE(refused(slot("s"), with([](auto& o) { o.missed = missed::all; })));
    EXPECT_TRUE(refused(slot("s"), with([](auto& o) { o.ttl = 0ms; })));
    EXPECT_TRUE(refused(slot("s"), with([](auto& o) { o.keep = 1min; })));
    EXPECT_TRUE(refused(slot("s"), with([](auto& o) {
                            o.at_most_once = true;
                            o.retries = 1;
                        })));
    EXPECT_TRUE(refused(every("day"), with([](auto& o) { o.missed = missed::none; })));
    EXPECT_TRUE(refused(every("day"), with([](auto& o) { o.early = 13h; })));
    EXPECT_TRUE(refused(every("day"), with([](auto& o) { o.missed_max = 0; })));
    EXPECT_TRUE(refused(every("day"), with([](auto& o) {
                            o.again = true;
                            o.missed = missed::all;
                        })));
    std::error_code error;
    (void)here.once("job\n", slot("s"), count, {}, {}, error);
    EXPECT_EQ(error, errc::invalid_key);
    (void)here.once("job", slot("s"), nullptr, {}, {}, error);
    EXPECT_EQ(error, errc::invalid_argument);
    EXPECT_EQ(runs, 0);
    EXPECT_THROW((void)cron("0 3 * *"), dibs::error);
    EXPECT_THROW((void)cron("@daily", "Nowhere"), dibs::error);
    EXPECT_THROW((void)every("fortnight"), dibs::error);
    EXPECT_THROW((void)slot("a@b"), dibs::error);
    EXPECT_THROW((void)every(-1s), dibs::error);
}

}  // namespace
}  // namespace dibs
