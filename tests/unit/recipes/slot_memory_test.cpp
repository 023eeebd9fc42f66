// SPDX-License-Identifier: Apache-2.0
// What a job forgets of its slots: only what later slots bear witness against, and never so that a slot runs again.
#include "recipes/once/slot_memory.hpp"

#include "once_host.hpp"
#include "recipes/once/schedule.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace dibs::recipes {
namespace {

using namespace testing;
using core::milliseconds;

constexpr std::int64_t day_ms = milliseconds{24h}.count();

class SlotMemory : public ::testing::Test {
  protected:
    /// Noon of a day, as a host sees it; day 0 is the first one here.
    static core::wall_instant noon(std::int64_t day) {
        return core::wall_instant{milliseconds{1'800'057'600'000 + day * day_ms} + 12h};
    }
    [[nodiscard]] slot slot_of(std::int64_t day) const { return plan.at(noon(day), {}); }
    [[nodiscard]] once_terms terms_of(std::int64_t day) const {
        auto terms = a.terms();
        terms.slot = slot_of(day).name;
        terms.begin_ms = begin_of(day);
        return terms;
    }
    [[nodiscard]] std::int64_t begin_of(std::int64_t day) const {
        return std::chrono::floor<milliseconds>(slot_of(day).begin.time_since_epoch()).count();
    }
    once_outcome claim(std::int64_t day) { return b.claim(terms_of(day)); }
    once_verdict verdict_of(std::int64_t day) { return claim(day).verdict; }
    /// What `dibs once` does for a slot.
    void run(std::int64_t day) {
        const auto run = a.claim(terms_of(day));
        ASSERT_EQ(run.verdict, once_verdict::granted) << day;
        EXPECT_TRUE(a.finish(run, true, 0, terms_of(day)).released);
        forget(day);
    }
    void forget(std::int64_t day) {
        bool told = false;
        memory.forget(
            "nightly",
            begin_of(day),
            keep,
            [this](std::int64_t at) {
                return plan.at(core::wall_instant{milliseconds{at}}, {}).name;
            },
            [&] { told = true; });
        EXPECT_TRUE(world.run_until([&] { return told; }, 1min)) << day;
        world.advance(1ms);  // what was forgotten is kept for a moment
    }
    /// Of how many slots something is kept.
    std::size_t kept() {
        std::size_t found = 0;
        bool told = false;
        b.line.list("nightly@", {}, 1000, [&](const core::page& page) {
            for (const auto& record : page.records) {
                bool newer = false;
                found += record.result && slot_record_of(record.result->value, newer) ? 1 : 0;
            }
            told = true;
        });
        EXPECT_TRUE(world.run_until([&] { return told; }, 1s));
        return found;
    }

    std::string space = [] {
        static std::atomic<int> last{0};
        return "slot-memory-test-" + std::to_string(++last);
    }();
    virtual_environment world;
    host a{world, space, "a"};
    host b{world, space, "b"};
    std::string why;
    schedule plan = schedule::make("day", "Europe/Berlin", why).value();
    milliseconds keep = 3 * 24h;
    slot_memory memory{world.view(), a.line};
};

TEST_F(SlotMemory, OldSlotsAreForgottenAndNeverRunAgain) {
    for (std::int64_t day = 0; day < 60; ++day) {
        run(day);
    }
    EXPECT_LE(kept(), 3U + 16U);
    EXPECT_GE(kept(), 4U);
    for (std::int64_t day = 0; day < 60; ++day) {
        const auto found = verdict_of(day);
        EXPECT_TRUE(found == once_verdict::done || found == once_verdict::forgotten) << day;
        if (day >= 56) {
            EXPECT_EQ(found, once_verdict::done) << day;
        }
    }
    EXPECT_EQ(verdict_of(0), once_verdict::forgotten);
    EXPECT_EQ(verdict_of(-5), once_verdict::granted) << "nobody has run it";
    EXPECT_EQ(verdict_of(60), once_verdict::granted);
}

TEST_F(SlotMemory, WhatLiesWithinItsTimeIsKeptHoweverManySlotsFollow) {
    keep = 100 * 24h;
    for (std::int64_t day = 0; day < 60; ++day) {
        run(day);
    }
    EXPECT_EQ(kept(), 60U);
    EXPECT_EQ(verdict_of(0), once_verdict::done);
}

TEST_F(SlotMemory, OneHostThatIsFarAheadFreesNothing) {
    keep = 30 * 24h;
    for (std::int64_t day = 0; day < 20; ++day) {
        const auto run = a.claim(terms_of(day));
        EXPECT_TRUE(a.finish(run, true, 0, terms_of(day)).released);
    }
    world.store_clock().step_wall(24h * 400);
    run(400);
    run(401);
    EXPECT_EQ(kept(), 22U);
    world.store_clock().step_wall(-24h * 400);
    for (std::int64_t day = 0; day < 20; ++day) {
        EXPECT_EQ(verdict_of(day), once_verdict::done) << day;
    }
}

TEST_F(SlotMemory, AHostThatStaysFarAheadMakesNothingRunAgainAndStopsNobody) {
    keep = 30 * 24h;
    for (std::int64_t day = 0; day < 20; ++day) {
        const auto run = a.claim(terms_of(day));
        EXPECT_TRUE(a.finish(run, true, 0, terms_of(day)).released);
    }
    world.store_clock().step_wall(24h * 400);
    for (std::int64_t day = 400; day < 500; ++day) {
        run(day);
    }
    EXPECT_LT(kept(), 60U) << "so many do bear witness";
    world.store_clock().step_wall(-24h * 400);
    for (std::int64_t day = 0; day < 20; ++day) {
        EXPECT_NE(verdict_of(day), once_verdict::granted) << day;
    }
    for (std::int64_t day = 20; day < 30; ++day) {
        run(day);
    }
}

TEST_F(SlotMemory, ARunThatIsUnderWayIsNotForgotten) {
    auto lasting = terms_of(0);
    lasting.acquire.lease.ttl = 1h;
    const auto slow = b.claim(lasting);
    ASSERT_EQ(slow.verdict, once_verdict::granted);
    for (std::int64_t day = 1; day < 30; ++day) {
        run(day);
    }
    EXPECT_TRUE(b.finish(slow, true, 0, lasting).released);
    EXPECT_EQ(verdict_of(0), once_verdict::done);
}

TEST_F(SlotMemory, SlotsNamedByHandAndOtherJobsAreLeftAlone) {
    auto by_hand = a.terms();
    by_hand.slot = "0-first-of-all";
    EXPECT_TRUE(a.finish(a.claim(by_hand), true, 0, by_hand).released);
    auto other = terms_of(0);
    other.job = "nightly@x";
    EXPECT_TRUE(a.finish(a.claim(other), true, 0, other).released);
    for (std::int64_t day = 0; day < 30; ++day) {
        run(day);
    }
    EXPECT_EQ(verdict_of(0), once_verdict::forgotten);
    EXPECT_EQ(b.claim(by_hand).verdict, once_verdict::done);
    EXPECT_EQ(b.claim(other).verdict, once_verdict::done);
}

TEST(ForgottenStretches, GrowTogetherWhenTheyAreNear) {
    forgotten_stretches known;
    for (const std::int64_t at : {10, 30, 20, 100, 15}) {
        note_forgotten(known, {at, at}, 10);
    }
    ASSERT_EQ(known.size(), 2U);
    EXPECT_EQ(known[0].from_ms, 10);
    EXPECT_EQ(known[0].to_ms, 30);
    EXPECT_EQ(known[1].from_ms, 100);
    note_forgotten(known, {40, 95}, 10);
    ASSERT_EQ(known.size(), 1U);
    EXPECT_EQ(known[0].to_ms, 100);
    note_forgotten(known, {50, 60}, 10);
    EXPECT_EQ(known[0].to_ms, 100) << "what lies within one changes nothing";
}

TEST(ForgottenStretches, OfTooManyTheNearestBecomeOne) {
    forgotten_stretches known;
    for (std::int64_t number = 0; number < 1000; ++number) {
        note_forgotten(known, {number * 100, number * 100}, 10);
    }
    note_forgotten(known, {1'000'000, 1'000'000}, 10);
    EXPECT_LE(known.size(), 64U);
    for (std::int64_t number = 0; number < 1000; ++number) {
        EXPECT_TRUE(std::any_of(known.begin(), known.end(), [&](const auto& one) {
            return one.from_ms <= number * 100 && number * 100 <= one.to_ms;
        })) << number;
    }
    EXPECT_EQ(known.back().from_ms, 1'000'000) << "what is far from all others stays alone";
}

/// Whatever goes wrong at whichever step, a slot that was run is done or forgotten, never free.
TEST_F(SlotMemory, NoFaultAtAnyStepMakesASlotRunAgain) {
    for (std::int64_t day = 0; day < 20; ++day) {
        const auto run = a.claim(terms_of(day));
        EXPECT_TRUE(a.finish(run, true, 0, terms_of(day)).released);
    }
    for (const auto trouble : {fault::refuse, fault::doubt, fault::repeat}) {
        for (std::size_t step = 0; step < 4; ++step) {
            std::size_t at = 0;
            a.line.plan = [&](std::size_t, const faulty_store::seen_batch&) {
                return at++ == step ? trouble : fault::none;
            };
            forget(19);
            a.line.plan = {};
            world.advance(10s);  // what was granted in vain has ended
            for (std::int64_t day = 0; day < 20; ++day) {
                EXPECT_NE(verdict_of(day), once_verdict::granted)
                    << day << " step " << step << " fault " << static_cast<int>(trouble);
            }
        }
    }
    EXPECT_EQ(verdict_of(0), once_verdict::forgotten);
}

TEST_F(SlotMemory, WhatWasForgottenByOneScheduleHoldsBackNoSlotOfAnother) {
    for (std::int64_t day = 0; day < 30; ++day) {
        run(day);
    }
    ASSERT_EQ(verdict_of(0), once_verdict::forgotten);
    auto month = terms_of(0);
    month.slot = schedule::make("month", "Europe/Berlin", why).value().at(noon(0), {}).name;
    EXPECT_EQ(b.claim(month).verdict, once_verdict::granted);
}

TEST_F(SlotMemory, AHorizonOfANewerReleaseIsNotGuessedAt) {
    auto terms = a.terms();
    std::optional<mutex_outcome> taken;
    a.keys.acquire(key_of_horizon("nightly"), terms.acquire, [&](mutex_outcome outcome) {
        taken = std::move(outcome);
    });
    world.run_until([&] { return taken.has_value(); }, 1s);
    ASSERT_TRUE(taken && taken->lease);
    bool told = false;
    core::result_to_keep left;
    left.value = R"({"v":2})";
    left.keep = 1h;
    a.keys.release(taken->lease, left, [&](const release_reply&) { told = true; });
    world.run_until([&] { return told; }, 1s);
    const auto found = claim(0);
    EXPECT_EQ(found.verdict, once_verdict::trouble);
    EXPECT_EQ(found.error, errc::newer_format);
}

}  // namespace
}  // namespace dibs::recipes
