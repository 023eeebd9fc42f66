// SPDX-License-Identifier: Apache-2.0
// Once per slot on virtual time: several hosts on one memory store, crashes, retries, losses.
#include "recipes/once/once.hpp"

#include "once_host.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dibs::recipes {
namespace {

using namespace testing;

class Once : public ::testing::Test {
  protected:
    std::string space = [] {
        static std::atomic<int> last{0};
        return "once-test-" + std::to_string(++last);
    }();
    virtual_environment world;
    host a{world, space, "a"};
    host b{world, space, "b"};
    host c{world, space, "c"};
};

TEST_F(Once, AHostThatIsLateFindsTheSlotDone) {
    const auto run = a.claim();
    ASSERT_EQ(run.verdict, once_verdict::granted);
    EXPECT_EQ(run.mine.attempt, 1U);
    EXPECT_FALSE(run.found);
    EXPECT_TRUE(a.finish(run, true).released);
    world.advance(50s);
    const auto late = b.claim();
    EXPECT_EQ(late.verdict, once_verdict::done);
    ASSERT_TRUE(late.found);
    EXPECT_EQ(late.found->host, "a");
    EXPECT_EQ(late.found->status, 0);
    EXPECT_EQ(late.found->state, slot_state::done);
}

TEST_F(Once, AnotherSlotOfTheJobIsAnotherRun) {
    EXPECT_TRUE(a.finish(a.claim(), true).released);
    auto tomorrow = b.terms();
    tomorrow.slot = "2026-11-30[UTC]";
    EXPECT_EQ(b.claim(tomorrow).verdict, once_verdict::granted);
}

TEST_F(Once, InTurnNoSlotBeginsWhileAnotherOneIsRun) {
    auto today = a.terms();
    today.in_turn = true;
    auto tomorrow = b.terms();
    tomorrow.slot = "2026-11-30[UTC]";
    tomorrow.in_turn = true;
    auto first = a.claim(today);
    ASSERT_EQ(first.verdict, once_verdict::granted);
    ASSERT_TRUE(first.turn);
    const auto refused = b.claim(tomorrow);
    EXPECT_EQ(refused.verdict, once_verdict::overlaps);
    EXPECT_EQ(refused.holders.size(), 1U);
    auto regardless = tomorrow;
    regardless.in_turn = false;
    regardless.slot = "2026-12-01[UTC]";
    EXPECT_EQ(c.claim(regardless).verdict, once_verdict::granted);

    auto patient = tomorrow;
    patient.acquire.wait = 1h;
    const auto waits = b.start(patient);
    world.advance(10min);
    EXPECT_FALSE(*waits) << "the one before is renewed, and so goes on";
    EXPECT_TRUE(a.finish(first, true, 0, today).released);
    world.advance(10min);
    EXPECT_FALSE(*waits) << "its outcome is there, its turn not over";
    a.keys.release(first.turn, [](release_reply) {});
    world.run_until([&] { return waits->has_value(); }, 10s);
    ASSERT_TRUE(*waits);
    EXPECT_EQ((*waits)->verdict, once_verdict::granted);
    EXPECT_TRUE((*waits)->turn);
}

TEST_F(Once, WhoeverWaitedForItsTurnFindsWhatBecameOfTheSlotMeanwhile) {
    auto in_turn = a.terms();
    in_turn.in_turn = true;
    const auto first = a.claim(in_turn);
    ASSERT_EQ(first.verdict, once_verdict::granted);
    auto patient = in_turn;
    patient.acquire.wait = 1h;
    const auto waits = b.start(patient);
    world.advance(1min);
    EXPECT_TRUE(a.finish(first, true, 0, in_turn).released);
    a.keys.release(first.turn, [](release_reply) {});
    world.run_until([&] { return waits->has_value(); }, 10s);
    ASSERT_TRUE(*waits);
    EXPECT_EQ((*waits)->verdict, once_verdict::done);
    // And left the turn to others.
    auto tomorrow = c.terms();
    tomorrow.slot = "2026-11-30[UTC]";
    tomorrow.in_turn = true;
    EXPECT_EQ(c.claim(tomorrow).verdict, once_verdict::granted);
}

TEST_F(Once, ATurnIsFreeWhenItsHostHasCrashed) {
    auto in_turn = a.terms();
    in_turn.in_turn = true;
    ASSERT_EQ(a.claim(in_turn).verdict, once_verdict::granted);
    a.crash();
    auto tomorrow = b.terms(1min);
    tomorrow.slot = "2026-11-30[UTC]";
    tomorrow.in_turn = true;
    EXPECT_EQ(b.claim(tomorrow).verdict, once_verdict::granted);
}

TEST_F(Once, AHoldOnTheJobHoldsAllOfItsSlots) {
    const auto operate = [&](core::microseconds length) {
        core::block asked;
        asked.key = "nightly";
        asked.duration = length;
        asked.reason = "moving house";
        bool told = false;
        c.batches.submit(asked, 1s, world.now() + 10s, [&](const core::reply& heard) {
            told = heard.given.what == core::verdict::block_set;
        });
        EXPECT_TRUE(world.run_until([&] { return told; }, 10s));
    };
    operate(1h);
    const auto refused = a.claim();
    EXPECT_EQ(refused.verdict, once_verdict::blocked);
    EXPECT_EQ(refused.blocked_reason, "moving house");
    const auto waits = b.start(b.terms(30min));
    world.advance(1min);
    EXPECT_FALSE(*waits);
    operate(0s);
    world.run_until([&] { return waits->has_value(); }, 10s);
    ASSERT_TRUE(*waits);
    EXPECT_EQ((*waits)->verdict, once_verdict::granted);
    EXPECT_TRUE(b.finish(**waits, true).released);
    // What is done is done, hold or not.
    operate(1h);
    EXPECT_EQ(a.claim().verdict, once_verdict::done);
    auto by_order = a.terms();
    by_order.again = true;
    EXPECT_EQ(a.claim(by_order).verdict, once_verdict::blocked);
}

TEST_F(Once, OfThreeHostsThatFireTogetherOneRuns) {
    const std::vector<host::told_ptr> told{
        a.start(a.terms()), b.start(b.terms()), c.start(c.terms())};
    world.run_until([&] { return *told[0] && *told[1] && *told[2]; }, 1min);
    int granted = 0;
    int running = 0;
    for (const auto& one : told) {
        ASSERT_TRUE(*one);
        granted += (*one)->verdict == once_verdict::granted ? 1 : 0;
        running += (*one)->verdict == once_verdict::running ? 1 : 0;
    }
    EXPECT_EQ(granted, 1);
    EXPECT_EQ(running, 2);
}

TEST_F(Once, WaitersSeeTheOutcome) {
    const auto run = a.claim();
    const auto waits = b.start(b.terms(1h));
    const auto too = c.start(c.terms(1h));
    world.advance(20s);
    EXPECT_FALSE(*waits);
    EXPECT_TRUE(a.finish(run, true).released);
    world.run_until([&] { return *waits && *too; }, 10s);
    ASSERT_TRUE(*waits && *too);
    EXPECT_EQ((*waits)->verdict, once_verdict::done);
    EXPECT_EQ((*too)->verdict, once_verdict::done);
}

TEST_F(Once, AWaitThatIsOverTellsWhoRuns) {
    const auto run = a.claim();
    const auto waited = b.claim(b.terms(10s));
    EXPECT_EQ(waited.verdict, once_verdict::running);
    EXPECT_EQ(waited.holders.size(), 1U);
    EXPECT_TRUE(run.lease->held(world.now()));
}

TEST_F(Once, AfterACrashAnotherHostRunsAgainWithTheNextNumber) {
    const auto run = a.claim();
    a.crash();
    EXPECT_EQ(b.claim().verdict, once_verdict::running);
    world.advance(7s);
    const auto again = b.claim();
    ASSERT_EQ(again.verdict, once_verdict::granted);
    EXPECT_EQ(again.mine.attempt, 2U);
    EXPECT_EQ(again.mine.failures, 0U) << "a crash uses up no retry";
    ASSERT_TRUE(again.found);
    EXPECT_EQ(again.found->state, slot_state::started);
    EXPECT_EQ(again.found->host, "a");
}

TEST_F(Once, AWaiterTakesOverFromACrashedHost) {
    const auto run = a.claim();
    const auto waits = b.start(b.terms(1h));
    world.advance(1s);
    a.crash();
    world.run_until([&] { return waits->has_value(); }, 20s);
    ASSERT_TRUE(*waits);
    EXPECT_EQ((*waits)->verdict, once_verdict::granted);
    EXPECT_EQ((*waits)->mine.attempt, 2U);
    EXPECT_EQ((*waits)->mine.started_ms, host::calendar_ms(world))
        << "that it waited before is no part of the run";
}

TEST_F(Once, AtMostOnceIsNeverGrantedAgainAfterACrash) {
    auto careful = a.terms();
    careful.at_most_once = true;
    ASSERT_EQ(a.claim(careful).verdict, once_verdict::granted);
    a.crash();
    world.advance(24h);
    for (const bool again : {true, false}) {
        auto terms = b.terms();
        terms.at_most_once = again;  // the mark counts, not the wish of whoever comes later
        const auto late = b.claim(terms);
        EXPECT_EQ(late.verdict, once_verdict::failed);
        ASSERT_TRUE(late.found);
        EXPECT_FALSE(late.found->status);
    }
}

TEST_F(Once, AtMostOnceWaitersLearnOfACrash) {
    auto careful = a.terms();
    careful.at_most_once = true;
    ASSERT_EQ(a.claim(careful).verdict, once_verdict::granted);
    auto patient = b.terms(1h);
    patient.at_most_once = true;
    const auto waits = b.start(patient);
    world.advance(1s);
    a.crash();
    world.run_until([&] { return waits->has_value(); }, 20s);
    ASSERT_TRUE(*waits);
    EXPECT_EQ((*waits)->verdict, once_verdict::failed);
}

TEST_F(Once, AFailureWithoutRetriesIsFinal) {
    EXPECT_TRUE(a.finish(a.claim(), false, 3).released);
    world.advance(24h);
    const auto late = b.claim(b.terms(1h));
    EXPECT_EQ(late.verdict, once_verdict::failed);
    EXPECT_EQ(late.found->status, 3);
    EXPECT_EQ(late.found->next_at_ms, 0);
}

TEST_F(Once, ByOrderASlotIsRunAgainWhateverHasBecomeOfIt) {
    auto careful = a.terms();
    careful.at_most_once = true;
    auto by_order = b.terms();
    by_order.again = true;
    unsigned attempt = 1;
    const auto is_run_again = [&] {
        const auto run = b.claim(by_order);
        EXPECT_EQ(run.verdict, once_verdict::granted);
        EXPECT_EQ(run.mine.attempt, ++attempt);
        EXPECT_EQ(run.mine.failures, 0U);
        return run;
    };
    EXPECT_TRUE(a.finish(a.claim(), false, 3).released);
    EXPECT_TRUE(b.finish(is_run_again(), true).released);
    EXPECT_EQ(c.claim().verdict, once_verdict::done);
    EXPECT_TRUE(b.interrupt(is_run_again(), 143, careful).released) << "it was done";
    EXPECT_TRUE(b.finish(is_run_again(), true).released);
    EXPECT_EQ(c.claim().verdict, once_verdict::done);
}

TEST_F(Once, AnOrderFindsAMarkThatWasToBeStartedOnceAndWaitsForNoBackOff) {
    auto careful = a.terms();
    careful.at_most_once = true;
    ASSERT_EQ(a.claim(careful).verdict, once_verdict::granted);
    a.crash();
    world.advance(24h);
    EXPECT_EQ(b.claim().verdict, once_verdict::failed);
    auto by_order = b.terms();
    by_order.again = true;
    by_order.retries = 1;
    by_order.backoff = 1h;
    EXPECT_TRUE(b.finish(b.claim(by_order), false, 3, by_order).released);
    EXPECT_EQ(c.claim().verdict, once_verdict::waiting);
    EXPECT_EQ(b.claim(by_order).verdict, once_verdict::granted);
}

TEST_F(Once, APlannedSlotThatIsNamedByHandIsRememberedAsLongAsItWas) {
    auto planned = a.terms();
    planned.begin_ms = host::calendar_ms(world);
    EXPECT_TRUE(a.finish(a.claim(planned), false, 3, planned).released);
    auto by_order = b.terms();
    by_order.again = true;
    EXPECT_TRUE(b.finish(b.claim(by_order), true, 0, by_order).released);
    world.advance(by_order.keep + 24h);
    EXPECT_EQ(c.claim(planned).verdict, once_verdict::done);
}

TEST_F(Once, TwoOrdersAtTheSameTimeAreOneRun) {
    EXPECT_TRUE(a.finish(a.claim(), false, 3).released);
    auto by_order = b.terms(1h);
    by_order.again = true;
    const auto run = b.claim(by_order);
    const auto other = c.start(by_order);
    world.advance(1s);
    EXPECT_FALSE(other->has_value());
    EXPECT_TRUE(b.finish(run, true).released);
    world.run_until([&] { return other->has_value(); }, 1min);
    ASSERT_TRUE(other->has_value());
    EXPECT_EQ((*other)->verdict, once_verdict::done);
    // Nor is a first run passed by that went on when the order came.
    by_order.slot = "another";
    auto plain = a.terms();
    plain.slot = by_order.slot;
    const auto first = a.claim(plain);
    const auto waits = c.start(by_order);
    world.advance(1s);
    EXPECT_TRUE(a.finish(first, true, 0, plain).released);
    world.run_until([&] { return waits->has_value(); }, 1min);
    ASSERT_TRUE(waits->has_value());
    EXPECT_EQ((*waits)->verdict, once_verdict::done);
}

TEST_F(Once, AFailureIsRetriedByAnyHostAfterItsBackOffUntilTheRetriesAreUsedUp) {
    auto terms = a.terms();
    terms.retries = 2;
    terms.backoff = 1min;
    EXPECT_TRUE(a.finish(a.claim(terms), false, 3, terms).released);
    const auto early = b.claim(terms);
    EXPECT_EQ(early.verdict, once_verdict::waiting);
    EXPECT_GT(early.retry_after, 59s);
    world.advance(61s);
    const auto second = b.claim(terms);
    ASSERT_EQ(second.verdict, once_verdict::granted);
    EXPECT_EQ(second.mine.attempt, 2U);
    EXPECT_TRUE(b.finish(second, false, 4, terms).released);
    world.advance(61s);
    EXPECT_EQ(c.claim(terms).verdict, once_verdict::waiting) << "the back-off doubles";
    world.advance(60s);
    const auto third = c.claim(terms);
    ASSERT_EQ(third.verdict, once_verdict::granted);
    EXPECT_EQ(third.mine.attempt, 3U);
    EXPECT_TRUE(c.finish(third, false, 5, terms).released);
    world.advance(24h);
    const auto after = a.claim(terms);
    EXPECT_EQ(after.verdict, once_verdict::failed);
    EXPECT_EQ(after.found->status, 5);
    EXPECT_EQ(after.found->failures, 3U);
}

TEST_F(Once, AWaiterSleepsThroughTheBackOffAndRunsThen) {
    auto terms = a.terms();
    terms.retries = 1;
    EXPECT_TRUE(a.finish(a.claim(terms), false, 3, terms).released);
    terms.acquire.wait = 1h;
    const auto from = world.now();
    const auto run = b.claim(terms);
    EXPECT_EQ(run.verdict, once_verdict::granted);
    EXPECT_EQ(run.mine.attempt, 2U);
    EXPECT_GE(world.now() - from, 59s);
    EXPECT_LE(world.now() - from, 62s);
}

TEST_F(Once, AnAttemptIsNumberedAnewWhenAnotherRunCameBetween) {
    auto terms = a.terms();
    terms.retries = 1;
    terms.backoff = 0s;  // so that a failure does not stand between
    const auto first = a.claim(terms);
    auto patient = b.terms(1h);
    patient.retries = 1;
    const auto waits = b.start(patient);  // numbered while the first run is under way
    world.advance(1s);
    EXPECT_TRUE(a.finish(first, false, 3, terms).released);
    world.run_until([&] { return waits->has_value(); }, 20s);
    ASSERT_TRUE(*waits);
    ASSERT_EQ((*waits)->verdict, once_verdict::granted);
    EXPECT_EQ((*waits)->mine.attempt, 2U);
    EXPECT_EQ((*waits)->mine.failures, 1U);
    EXPECT_TRUE(b.finish(**waits, false, 4, patient).released);
    EXPECT_EQ(c.claim(terms).verdict, once_verdict::failed) << "both retries are used up";
}

TEST_F(Once, ALostRunHasFailedWhateverItSays) {
    for (const bool careful : {false, true}) {
        auto terms = a.terms();
        terms.slot = careful ? "careful" : "plain";
        terms.at_most_once = careful;
        const auto run = a.claim(terms);
        a.crash();
        world.advance(7s);
        a.line.plan = {};
        EXPECT_FALSE(run.lease->held(world.now()));
        EXPECT_FALSE(a.finish(run, true, 0, terms).released);
        auto other = b.terms();
        other.slot = terms.slot;
        const auto later = b.claim(other);
        EXPECT_EQ(later.verdict, once_verdict::failed);
        ASSERT_TRUE(later.found);
        EXPECT_EQ(later.found->state, slot_state::failed);
        EXPECT_TRUE(later.found->lost);
        EXPECT_EQ(later.found->failures, 1U);
    }
}

TEST_F(Once, ALostRunUsesUpARetryAndIsFollowedByItsBackOff) {
    auto terms = a.terms();
    terms.retries = 1;
    terms.backoff = 1min;
    const auto run = a.claim(terms);
    a.crash();
    world.advance(7s);
    a.line.plan = {};
    EXPECT_FALSE(a.finish(run, true, 0, terms).released);
    EXPECT_EQ(b.claim(terms).verdict, once_verdict::waiting);
    world.advance(1min);
    const auto again = b.claim(terms);
    ASSERT_EQ(again.verdict, once_verdict::granted);
    EXPECT_EQ(again.mine.attempt, 2U);
    EXPECT_TRUE(b.finish(again, false, 3, terms).released);
    EXPECT_EQ(c.claim(terms).verdict, once_verdict::failed);
}

TEST_F(Once, ALostRunLeavesNothingOnceAnotherHasBegun) {
    auto terms = a.terms();
    terms.retries = 5;
    const auto run = a.claim(terms);
    a.crash();
    world.advance(7s);
    a.line.plan = {};
    const auto second = b.claim(terms);
    ASSERT_EQ(second.verdict, once_verdict::granted);
    EXPECT_FALSE(a.finish(run, true, 0, terms).released);
    b.crash();
    world.advance(7s);
    EXPECT_FALSE(a.finish(run, true, 0, terms).released) << "that one has begun and gone";
    const auto third = c.claim(terms);
    ASSERT_EQ(third.verdict, once_verdict::granted);
    EXPECT_EQ(third.mine.attempt, 3U);
    EXPECT_EQ(third.mine.failures, 0U);
    ASSERT_TRUE(third.found);
    EXPECT_EQ(third.found->state, slot_state::started);
    EXPECT_EQ(third.found->attempt, 2U);
    EXPECT_TRUE(c.finish(third, true, 0, terms).released);
    EXPECT_FALSE(a.finish(run, true, 0, terms).released);
    EXPECT_EQ(b.claim(terms).verdict, once_verdict::done);
}

TEST_F(Once, WhereTheStoreCannotBeToldOfALossTheNextHostRunsAtOnce) {
    const auto run = a.claim();
    a.crash();
    world.advance(7s);
    EXPECT_FALSE(a.finish(run, true).released);
    const auto again = b.claim();
    EXPECT_EQ(again.verdict, once_verdict::granted);
    EXPECT_EQ(again.mine.failures, 0U);
}

TEST_F(Once, AnOutcomeIsSentAgainWhenItsAnswerIsLost) {
    for (const auto trouble :
         {fault::doubt, fault::lose_request, fault::refuse, fault::lose_answer}) {
        auto terms = a.terms();
        terms.slot = "slot-" + std::to_string(static_cast<int>(trouble));
        const auto run = a.claim(terms);
        ASSERT_EQ(run.verdict, once_verdict::granted);
        bool hit = false;
        a.line.plan = [&](std::size_t, const faulty_store::seen_batch& batch) {
            const bool is_release = std::holds_alternative<core::release>(batch.entries[0].what);
            return is_release && !std::exchange(hit, true) ? trouble : fault::none;
        };
        EXPECT_TRUE(a.finish(run, true, 0, terms).released) << static_cast<int>(trouble);
        EXPECT_TRUE(hit);
        a.line.plan = {};
        auto late = b.terms();
        late.slot = terms.slot;
        EXPECT_EQ(b.claim(late).verdict, once_verdict::done);
    }
}

TEST_F(Once, AnOutcomeThatAnotherRunReplacedWhileItsAnswerWasLostIsUnknown) {
    auto terms = a.terms();
    terms.retries = 1;
    terms.backoff = 0s;
    auto patient = b.terms(1h);
    patient.retries = 1;
    patient.backoff = 0s;
    const auto run = a.claim(terms);
    const auto waits = b.start(patient);
    world.advance(1s);
    bool hit = false;
    a.line.plan = [&](std::size_t, const faulty_store::seen_batch& batch) {
        const bool is_release = std::holds_alternative<core::release>(batch.entries[0].what);
        return is_release && !std::exchange(hit, true) ? fault::lose_answer : fault::none;
    };
    const auto told = a.finish(run, false, 3, terms);
    EXPECT_TRUE(hit);
    ASSERT_TRUE(*waits);
    EXPECT_EQ((*waits)->verdict, once_verdict::granted) << "so the failure was kept";
    EXPECT_FALSE(told.released);
    EXPECT_EQ(told.error, errc::outcome_unknown) << "not held any more would be a lie";
}

TEST_F(Once, TwoCallsOfOneProcessDoNotHandTheSlotOn) {
    const auto run = a.claim();
    const auto second = a.start(a.terms(1h));
    const auto third = a.start(a.terms(1h));
    world.advance(1s);
    EXPECT_TRUE(a.finish(run, true).released);
    world.run_until([&] { return *second && *third; }, 10s);
    ASSERT_TRUE(*second && *third);
    EXPECT_EQ((*second)->verdict, once_verdict::done);
    EXPECT_EQ((*third)->verdict, once_verdict::done);
}

TEST_F(Once, ACancelledWaitRunsNothing) {
    const auto run = a.claim();
    const auto waits = b.start(b.terms(1h));
    world.advance(1s);
    b.slots.cancel(b.call);
    world.run_ready();
    ASSERT_TRUE(*waits);
    EXPECT_EQ((*waits)->error, errc::cancelled);
    EXPECT_FALSE((*waits)->lease);
    EXPECT_TRUE(a.finish(run, false).released);
    world.advance(1min);
    EXPECT_EQ(c.claim().verdict, once_verdict::failed) << "nobody has run it since";
}

TEST_F(Once, TheOutcomeIsForgottenAfterItsTime) {
    auto terms = a.terms();
    terms.keep = 1h;
    EXPECT_TRUE(a.finish(a.claim(terms), true, 0, terms).released);
    world.advance(59min);
    EXPECT_EQ(b.claim(terms).verdict, once_verdict::done);
    world.advance(2min);
    EXPECT_EQ(b.claim(terms).verdict, once_verdict::granted);
}

TEST_F(Once, AnInterruptedRunIsFreeAtOnceAndUsesUpNoRetry) {
    auto patient = b.terms(1h);
    const auto run = a.claim();
    const auto waits = b.start(patient);
    world.advance(1s);
    EXPECT_TRUE(a.interrupt(run, 143, a.terms()).released);
    world.run_until([&] { return waits->has_value(); }, 1s);
    ASSERT_TRUE(*waits);
    const auto& second = **waits;
    ASSERT_EQ(second.verdict, once_verdict::granted);
    EXPECT_EQ(second.mine.attempt, 2U);
    EXPECT_EQ(second.mine.failures, 0U);
    EXPECT_TRUE(b.interrupt(second, 143, patient).released);
    const auto third = c.claim();
    ASSERT_EQ(third.verdict, once_verdict::granted);
    ASSERT_TRUE(third.found);
    EXPECT_EQ(third.found->state, slot_state::interrupted);
    EXPECT_EQ(third.found->status, 143);
    EXPECT_TRUE(c.finish(third, false, 3).released);
    EXPECT_EQ(a.claim().verdict, once_verdict::failed);
}

/// However many wait, the end of a run is the beginning of the next one, and no attempt is counted that was none.
TEST_F(Once, ManyWhoWaitAreGrantedOneAfterTheOtherAtOnce) {
    std::vector<std::unique_ptr<host>> hosts;
    std::vector<host::told_ptr> calls;
    auto terms = a.terms(1h);
    terms.retries = 20;
    terms.backoff = 0s;
    auto run = a.claim(terms);
    for (int number = 0; number < 12; ++number) {
        hosts.push_back(std::make_unique<host>(world, space, "waiter" + std::to_string(number)));
        calls.push_back(hosts.back()->start(terms));
    }
    world.advance(1s);
    EXPECT_TRUE(a.interrupt(run, 143, terms).released);
    std::vector<bool> ended(hosts.size());
    for (unsigned attempt = 2; attempt <= 13; ++attempt) {
        const auto granted = [&](std::size_t at) {
            return !ended[at] && calls[at]->has_value() &&
                   (*calls[at])->verdict == once_verdict::granted;
        };
        std::size_t who = hosts.size();
        ASSERT_TRUE(world.run_until(
            [&] {
                for (who = 0; who < hosts.size() && !granted(who); ++who) {
                }
                return who < hosts.size();
            },
            3s))
            << "attempt " << attempt;
        ended[who] = true;
        EXPECT_EQ((*calls[who])->mine.attempt, attempt);
        if (attempt % 3 == 0) {
            EXPECT_TRUE(hosts[who]->interrupt(**calls[who], 143, terms).released);
        } else {
            EXPECT_TRUE(hosts[who]->finish(**calls[who], false, 3, terms).released);
        }
    }
}

TEST_F(Once, ASlotThatWasGrantedAndNotRunIsAsItWas) {
    const auto withdraw = [&](host& by, const once_outcome& run, const once_terms& terms) {
        std::optional<release_reply> told;
        by.slots.withdraw(
            run.lease, terms, run.found, [&](release_reply heard) { told = std::move(heard); });
        EXPECT_TRUE(world.run_until([&] { return told.has_value(); }, 1min));
        EXPECT_TRUE(told && told->released);
    };
    auto careful = a.terms();
    careful.at_most_once = true;
    withdraw(a, a.claim(careful), careful);
    const auto first = b.claim(careful);
    ASSERT_EQ(first.verdict, once_verdict::granted) << "nobody has started it";
    EXPECT_EQ(first.mine.attempt, 1U);

    auto terms = a.terms();
    terms.slot = "another";
    terms.retries = 1;
    terms.backoff = 1min;
    EXPECT_TRUE(a.finish(a.claim(terms), false, 3, terms).released);
    world.advance(1min);
    const auto second = b.claim(terms);
    ASSERT_EQ(second.verdict, once_verdict::granted);
    withdraw(b, second, terms);
    const auto again = c.claim(terms);
    ASSERT_EQ(again.verdict, once_verdict::granted) << "its back-off does not begin anew";
    EXPECT_EQ(again.mine.attempt, 2U);
    EXPECT_EQ(again.mine.failures, 1U);
}

TEST_F(Once, AnInterruptedRunThatMayBeStartedOnceIsNeverGrantedAgain) {
    auto careful = a.terms();
    careful.at_most_once = true;
    EXPECT_TRUE(a.interrupt(a.claim(careful), 143, careful).released);
    for (const bool again : {true, false}) {
        auto terms = b.terms(again ? 1h : 0h);
        terms.at_most_once = again;
        const auto late = b.claim(terms);
        EXPECT_EQ(late.verdict, once_verdict::failed);
        ASSERT_TRUE(late.found);
        EXPECT_EQ(late.found->status, 143);
    }
}

TEST_F(Once, WhoWantsItAtMostOnceDoesNotRunWhatSomebodyElseHasStarted) {
    auto careful = b.terms();
    careful.at_most_once = true;
    const auto run = a.claim();
    auto patient = careful;
    patient.acquire.wait = 1h;
    const auto waits = b.start(patient);
    world.advance(1s);
    EXPECT_FALSE(*waits) << "it may yet end well";
    a.crash();
    world.run_until([&] { return waits->has_value(); }, 20s);
    ASSERT_TRUE(*waits);
    EXPECT_EQ((*waits)->verdict, once_verdict::failed);
    EXPECT_EQ(b.claim(careful).verdict, once_verdict::failed);
    const auto other = c.claim();
    EXPECT_EQ(other.verdict, once_verdict::granted) << "who does not mind may";
    EXPECT_EQ(other.mine.attempt, 2U);
}

TEST_F(Once, AClockThatIsAheadFreesNoMarkOfASlotThatMayBeStartedOnce) {
    auto careful = a.terms();
    careful.at_most_once = true;
    ASSERT_EQ(a.claim(careful).verdict, once_verdict::granted);
    a.crash();
    world.advance(7s);
    auto other = careful;
    other.slot = "ended well";
    EXPECT_TRUE(c.finish(c.claim(other), true, 0, other).released);
    for (const auto ahead : {core::microseconds{24h * 400}, core::microseconds{-24h * 400}}) {
        world.store_clock().step_wall(ahead);
        EXPECT_EQ(b.claim(careful).verdict, once_verdict::failed);
        EXPECT_EQ(b.claim(other).verdict, once_verdict::done);
    }
}

TEST_F(Once, ABackOffIsCountedByTheClockThatNobodySets) {
    auto terms = a.terms();
    terms.retries = 1;
    terms.backoff = 1h;
    terms.boot = "this boot";
    EXPECT_TRUE(a.finish(a.claim(terms), false, 3, terms).released);
    world.store_clock().step_wall(2h);
    const auto early = b.claim(terms);
    EXPECT_EQ(early.verdict, once_verdict::waiting);
    EXPECT_GT(early.retry_after, 59min);
    EXPECT_LE(early.retry_after, 1h);
    auto patient = terms;
    patient.acquire.wait = 2h;
    const auto from = world.now();
    EXPECT_EQ(b.claim(patient).verdict, once_verdict::granted);
    EXPECT_GE(world.now() - from, 59min);
}

/// What a host leaves whose clock was far ahead holds nobody back once the clock is right.
TEST_F(Once, ACrashAFailureAndAnInterruptionInADreamOfTheFutureAreNoObstacleLater) {
    auto terms = a.terms();
    terms.retries = 5;
    terms.boot = "this boot";
    const auto back = [&] {
        world.store_clock().step_wall(-24h * 30);
        world.advance(2min);
    };
    world.store_clock().step_wall(24h * 30);
    EXPECT_TRUE(a.interrupt(a.claim(terms), 143, terms).released);
    back();
    const auto second = b.claim(terms);
    ASSERT_EQ(second.verdict, once_verdict::granted);
    EXPECT_EQ(second.mine.attempt, 2U);
    EXPECT_TRUE(b.interrupt(second, 143, terms).released);
    world.store_clock().step_wall(24h * 30);
    EXPECT_TRUE(a.finish(a.claim(terms), false, 3, terms).released);
    back();
    const auto fourth = b.claim(terms);
    ASSERT_EQ(fourth.verdict, once_verdict::granted);
    EXPECT_TRUE(b.interrupt(fourth, 143, terms).released);
    world.store_clock().step_wall(24h * 30);
    ASSERT_EQ(a.claim(terms).verdict, once_verdict::granted);
    a.crash();
    back();
    EXPECT_EQ(b.claim(terms).verdict, once_verdict::granted);
}

TEST_F(Once, OtherHostsGoByTheStoresClockForABackOff) {
    auto terms = a.terms();
    terms.retries = 1;
    terms.backoff = 1h;
    terms.boot = "this boot";
    EXPECT_TRUE(a.finish(a.claim(terms), false, 3, terms).released);
    terms.boot = "another";
    EXPECT_EQ(b.claim(terms).verdict, once_verdict::waiting);
    world.store_clock().step_wall(2h);
    EXPECT_EQ(b.claim(terms).verdict, once_verdict::granted);
}

TEST_F(Once, ALookThatFailsIsMadeAgainForAsLongAsATryMayTake) {
    for (const auto error : {errc::store_busy, errc::store_unreachable}) {
        a.line.look_plan = [error] { return make_error_code(error); };
        const auto asked = world.now();
        const auto given_up = a.claim();
        EXPECT_EQ(given_up.error, error);
        EXPECT_EQ(given_up.detail, "it cannot be looked at");
        EXPECT_GE(world.now() - asked, 5s);
        EXPECT_LE(world.now() - asked, 5s + 20ms);
    }
    std::size_t looks = 0;
    a.line.look_plan = [&] {
        return ++looks < 5 ? make_error_code(errc::store_busy) : std::error_code{};
    };
    EXPECT_EQ(a.claim().verdict, once_verdict::granted);
}

TEST_F(Once, OfALookThatTheStoreRefusesOnlyWhoWaitsIsNotToldAtOnce) {
    std::size_t looks = 0;
    a.line.look_plan = [&] {
        ++looks;
        return make_error_code(errc::store_refused);
    };
    const auto asked = world.now();
    EXPECT_EQ(a.claim().error, errc::store_refused);
    EXPECT_EQ(world.now(), asked);
    EXPECT_EQ(looks, 1U);
    EXPECT_EQ(a.claim(a.terms(20s)).error, errc::store_refused);
    EXPECT_GE(world.now() - asked, 20s);
    EXPECT_LE(world.now() - asked, 20s + 20ms);
    EXPECT_LE(looks, 40U);
    const auto waits = a.start(a.terms(1min));
    world.advance(30s);
    EXPECT_FALSE(*waits);
    const auto key = key_of_slot(a.terms().job, a.terms().slot);
    EXPECT_EQ(a.keys.trouble_with(key).detail, "it cannot be looked at");
    a.line.look_plan = nullptr;
    ASSERT_TRUE(world.run_until([&] { return waits->has_value(); }, 2s));
    EXPECT_EQ((*waits)->verdict, once_verdict::granted);
    EXPECT_FALSE(a.keys.trouble_with(key).error);
}

TEST_F(Once, ATurnIsNotKeptWhileTheSlotCannotBeLookedAt) {
    auto mine = a.terms(20s);
    mine.in_turn = true;
    std::size_t looks = 0;
    a.line.look_plan = [&] {
        return ++looks > 2 ? make_error_code(errc::store_refused) : std::error_code{};
    };
    const auto waits = a.start(mine);
    world.advance(3s);
    ASSERT_GT(looks, 3U) << "the turn was had, and then came the trouble";
    auto tomorrow = b.terms();
    tomorrow.slot = "2026-11-30[UTC]";
    tomorrow.in_turn = true;
    EXPECT_EQ(b.claim(tomorrow).verdict, once_verdict::granted);
}

TEST_F(Once, ARecordOfANewerReleaseOrOfSomethingElseIsNotGuessedAt) {
    for (const auto& [value, expected] :
         {std::pair{std::string(R"({"v":2,"whatever":1})"), errc::newer_format},
          std::pair{std::string("not a record"), errc::store_damaged}}) {
        auto terms = a.terms();
        terms.slot = "odd-" + std::to_string(value.size());
        std::optional<mutex_outcome> taken;
        a.keys.acquire(key_of_slot(terms.job, terms.slot),
                       terms.acquire,
                       [&](mutex_outcome outcome) { taken = std::move(outcome); });
        world.run_until([&] { return taken.has_value(); }, 1s);
        ASSERT_TRUE(taken && taken->lease);
        bool told = false;
        core::result_to_keep left;
        left.value = value;
        left.keep = 1h;
        a.keys.release(taken->lease, left, [&](const release_reply&) { told = true; });
        world.run_until([&] { return told; }, 1s);
        const auto found = b.claim(terms);
        EXPECT_EQ(found.verdict, once_verdict::trouble);
        EXPECT_EQ(found.error, expected);
    }
}

TEST(SlotRecord, SurvivesTheWayThroughText) {
    slot_record made;
    made.job = "a \"job\"";
    made.slot = "2026-11-29[Europe/Berlin]";
    made.attempt = 3;
    made.failures = 2;
    made.state = slot_state::failed;
    made.status = 137;
    made.host = "h";
    made.pid = 17;
    made.user = "u";
    made.started_ms = 1;
    made.ended_ms = 2;
    made.next_at_ms = 3;
    made.begin_ms = -4;
    made.boot = "b";
    made.ended_boot_ms = 5;
    bool newer = true;
    const auto read = slot_record_of(to_text(made), newer);
    ASSERT_TRUE(read);
    EXPECT_FALSE(newer);
    EXPECT_EQ(to_text(*read), to_text(made));
    made.state = slot_state::interrupted;
    EXPECT_EQ(slot_record_of(to_text(made), newer).value_or(slot_record{}).state,
              slot_state::interrupted);
}

TEST(SlotRecord, NoTwoSlotsHaveTheSameIdempotencyKey) {
    EXPECT_EQ(idempotency_key_of("nightly", "2026-11-29[Europe/Berlin]"),
              "nightly/2026-11-29[Europe/Berlin]");
    EXPECT_NE(idempotency_key_of("a/b", "c"), idempotency_key_of("a", "b/c"));
    EXPECT_NE(idempotency_key_of("a/b", "c"), idempotency_key_of("a%2Fb", "c"));
}

TEST(SlotRecord, KeysOfDifferentThingsDiffer) {
    EXPECT_EQ(key_of_slot("a@b", "c"), "a@b@c");
    EXPECT_NE(fault_of_slot("b@c"), "") << "or it would be the slot of another job";
    EXPECT_NE(fault_of_slot("x#skip:host"), "") << "or it would be another slot's skip";
    EXPECT_NE(fault_of_slot(""), "") << "or it would be near the job's horizon";
    EXPECT_EQ(key_of_horizon("a@b"), "a@b@#horizon");
    EXPECT_EQ(fault_of_slot("2026-11-29T10:30Z"), "");
}

}  // namespace
}  // namespace dibs::recipes
