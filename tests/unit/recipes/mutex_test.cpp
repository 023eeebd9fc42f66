// SPDX-License-Identifier: Apache-2.0
// The mutex on virtual time, with the memory store behind a line that loses, delays, repeats and
// refuses. Whatever happens, at most one holder; and when all is over, nothing is held and nothing
// is remembered.

#include "mutex_process.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dibs::recipes {

// --- one try -------------------------------------------------------------------------------------

TEST_F(Mutex, AFreeKeyIsGrantedInOneRoundTrip) {
    const auto told = here.acquire();
    EXPECT_FALSE(told->outcome) << "never inside the call";
    world.run_ready();
    ASSERT_TRUE(told->lease());
    EXPECT_EQ(here.line.seen.size(), 1U);
    EXPECT_TRUE(told->lease()->held(world.now()));
    EXPECT_EQ(told->lease()->deadline(), core::local_deadline(world.now(), 6s));
    EXPECT_EQ(here.keys.counters().granted, 1U);
}

TEST_F(Mutex, BusyIsNoErrorAndNamesTheHolder) {
    const auto lease = there.take();
    ASSERT_TRUE(lease);
    const auto told = here.acquire();
    world.run_ready();
    ASSERT_TRUE(told->busy());
    ASSERT_EQ(told->outcome->holders.size(), 1U);
    EXPECT_EQ(told->outcome->holders[0].fences.first, lease->fence());
    EXPECT_EQ(here.keys.counters().busy, 1U);
    EXPECT_EQ(here.line.seen.size(), 1U) << "one try";
}

TEST_F(Mutex, TroubleIsAnErrorAndNeverBusy) {
    here.line.plan = [](std::size_t, const auto&) { return fault::refuse; };
    const auto begun = world.now();
    const auto refused = here.acquire();
    world.advance(6s);
    ASSERT_TRUE(refused->outcome);
    EXPECT_FALSE(refused->lease());
    EXPECT_EQ(refused->outcome->error, condition::retryable);
    EXPECT_LE(refused->when - begun, 5s + 20ms);
    EXPECT_GE(here.line.seen.size(), 3U) << "tried again until its time-out";

    here.line.plan = [](std::size_t, const auto&) { return fault::lose_request; };
    const auto hung = here.acquire(terms_of(), "other");
    const auto since = world.now();
    world.advance(6s);
    ASSERT_TRUE(hung->outcome);
    EXPECT_EQ(hung->outcome->error, condition::outcome_unknown);
    EXPECT_LE(hung->when - since, 5s + 20ms);
    EXPECT_EQ(here.keys.counters().busy, 0U);
}

TEST_F(Mutex, AShortTroubleIsLivedThrough) {
    here.line.plan = [](std::size_t number, const auto&) {
        return number < 4 ? fault::refuse : fault::none;
    };
    EXPECT_TRUE(here.take());
}

TEST_F(Mutex, WhoDoesNotWaitIsToldOfARefusalByTheStoreAtOnce) {
    here.line.plan = [](std::size_t, const auto&) { return fault::deny; };
    const auto begun = world.now();
    const auto refused = here.acquire();
    world.advance(6s);
    ASSERT_TRUE(refused->outcome);
    EXPECT_EQ(refused->outcome->error, errc::store_refused);
    EXPECT_EQ(refused->outcome->detail, "the disk is full");
    EXPECT_LE(refused->when - begun, 1ms);
    EXPECT_EQ(here.line.seen.size(), 1U) << "one try";
}

TEST_F(Mutex, AShortWaitEndsAlsoWhileTheStoreRefuses) {
    here.line.plan = [](std::size_t, const auto&) { return fault::deny; };
    for (const auto wait : {200ms, 2000ms}) {
        const auto begun = world.now();
        const auto refused = here.acquire(terms_of(wait));
        world.advance(6s);
        ASSERT_TRUE(refused->outcome);
        EXPECT_EQ(refused->outcome->error, errc::store_refused);
        EXPECT_EQ(refused->outcome->detail, "the disk is full");
        EXPECT_GE(refused->when - begun, wait);
        EXPECT_LE(refused->when - begun, wait + 20ms);
    }
}

TEST_F(Mutex, AShortWaitEndsAlsoWhileTheStoreGrantsNothingYet) {
    here.line.plan = [](std::size_t, const auto&) { return fault::not_ready; };
    for (const auto wait : {0ms, 200ms, 2000ms}) {
        const auto begun = world.now();
        const auto refused = here.acquire(terms_of(wait));
        world.advance(6s);
        ASSERT_TRUE(refused->outcome);
        EXPECT_EQ(refused->outcome->error, errc::not_ready);
        EXPECT_GE(refused->when - begun, wait);
        EXPECT_LE(refused->when - begun, wait + 20ms);
    }
}

TEST_F(Mutex, WhoWaitsLivesThroughARefusalByTheStore) {
    here.line.plan = [](std::size_t number, const auto&) {
        return number < 4 ? fault::deny : fault::none;
    };
    EXPECT_TRUE(here.take(terms_of(1s)));
    here.line.plan = [begun = here.line.seen.size()](std::size_t number, const auto&) {
        return number < begun + 4 ? fault::deny : fault::none;
    };
    auto terms = terms_of();
    terms.patient_until = core::instant::max();
    EXPECT_TRUE(here.take(terms, "other")) << "one step of a call that waits";
}

TEST_F(Mutex, ARefusalAfterATryInDoubtIsNotTheEnd) {
    here.line.plan = [](std::size_t number, const auto&) {
        return number == 1 ? fault::doubt : number == 2 ? fault::deny : fault::none;
    };
    EXPECT_TRUE(here.take()) << "the first try was granted, and is found";
}

TEST_F(Mutex, AGrantWhoseAnswerWasLostIsFoundWithTheSameFence) {
    std::optional<core::holder_id> first_holder;
    here.line.plan = [&](std::size_t number, const faulty_store::seen_batch& batch) {
        const auto* const asked = std::get_if<core::acquire>(&batch.entries[0].what);
        if (number == 1) {
            first_holder = asked->holder;
            return fault::doubt;
        }
        EXPECT_TRUE(asked == nullptr || asked->holder == *first_holder)
            << "a retry is made by the same holder id";
        return fault::none;
    };
    const auto lease = here.take();
    ASSERT_TRUE(lease);
    EXPECT_EQ(here.line.seen.size(), 2U);
    const auto holders = there.holders();
    ASSERT_EQ(holders.size(), 1U);
    EXPECT_EQ(holders[0].fences.first, lease->fence());
    EXPECT_EQ(holders[0].held_for,
              core::microseconds(std::chrono::duration_cast<core::microseconds>(
                  here.line.seen[1].when - here.line.seen[0].when)))
        << "the grant of the first try, not another one";
    world.advance(20s);
    EXPECT_TRUE(lease->held(world.now())) << "no doubt is left that would release it";
    EXPECT_EQ(here.doubts.open(), 0U);
}

TEST_F(Mutex, ALateAnswerOfAnEarlierTryDoesNotDisturbTheLease) {
    here.line.delay = 1500ms;  // longer than a sixth of the ttl
    here.line.plan = [](std::size_t number, const auto&) {
        return number == 1 ? fault::delay_answer : fault::none;
    };
    const auto lease = here.take();
    ASSERT_TRUE(lease);
    world.advance(30s);
    EXPECT_TRUE(lease->held(world.now()));
    EXPECT_EQ(here.line.count<core::release>(), 0U);
}

TEST_F(Mutex, ALateAnswerOfAnEarlierTryDoesNotEndALeaseThatWasGivenAway) {
    here.line.delay = 1500ms;
    here.line.plan = [](std::size_t number, const auto&) {
        return number == 1 ? fault::delay_answer : fault::none;
    };
    auto lease = here.take();
    ASSERT_TRUE(lease);
    ASSERT_TRUE(here.keys.give_away(lease));
    lease.reset();
    world.advance(3s);
    EXPECT_EQ(there.holders().size(), 1U) << "it is on its way to another process";
    EXPECT_EQ(here.line.count<core::release>(), 0U);
    EXPECT_EQ(here.doubts.open(), 0U);
}

TEST_F(Mutex, TheLateGrantOfAnAbandonedAcquireIsReleased) {
    here.line.delay = 3s;
    here.line.plan = [](std::size_t number, const auto&) {
        return number == 1 ? fault::delay_answer : fault::none;
    };
    const auto told = here.acquire(terms_of(0s, 60s, 2s));
    world.advance(2500ms);
    ASSERT_TRUE(told->outcome);
    EXPECT_EQ(told->outcome->error, condition::outcome_unknown);
    world.advance(2s);
    EXPECT_TRUE(there.holders().empty());
    EXPECT_EQ(here.doubts.undone(), 1U);
    EXPECT_EQ(here.doubts.open(), 0U);
    EXPECT_TRUE(there.take());
}

TEST_F(Mutex, AGrantAfterItsOwnDeadlineIsNotUsed) {
    auto terms = terms_of(0s, 600ms, 5s);
    here.line.delay = 700ms;
    here.line.plan = [](std::size_t number, const auto&) {
        return number == 1 ? fault::delay_answer : fault::none;
    };
    const auto told = here.acquire(terms);
    world.advance(2s);
    ASSERT_TRUE(told->lease()) << "tried again";
    EXPECT_TRUE(told->lease()->held(world.now()));
}

TEST_F(Mutex, ARepeatedMessageGrantsOnce) {
    here.line.plan = [](std::size_t, const auto&) { return fault::repeat; };
    const auto lease = here.take();
    ASSERT_TRUE(lease);
    EXPECT_EQ(there.holders().size(), 1U);
    EXPECT_FALSE(there.take());
}

// --- waiting -------------------------------------------------------------------------------------

TEST_F(Mutex, AWaiterIsWokenByTheRelease) {
    const auto lease = there.take();
    const auto told = here.acquire(terms_of(1min));
    world.advance(1100ms);
    EXPECT_FALSE(told->outcome);
    EXPECT_EQ(here.line.watches, 1U);
    const auto tries = here.line.count<core::acquire>();
    const auto when = world.now();
    ASSERT_TRUE(there.release(lease)->released);
    world.run_ready();
    ASSERT_TRUE(told->lease());
    EXPECT_EQ(told->when, when) << "by the wake-up, not by a timer";
    EXPECT_EQ(here.line.count<core::acquire>(), tries + 1);
    EXPECT_GT(told->lease()->fence(), lease->fence());
}

TEST_F(Mutex, AWaiterDoesNotPoll) {
    const auto lease = there.take();
    const auto told = here.acquire(terms_of(1min));
    world.advance(30s);
    EXPECT_LE(here.line.count<core::acquire>(), 40U) << "a net of seconds, not of milliseconds";
    EXPECT_FALSE(told->outcome);
}

TEST_F(Mutex, AWaiterPollsForALockOfAnotherProgramWhichWakesNobody) {
    here.line.strangers = true;
    here.line.deaf = true;
    const auto lease = there.take();
    const auto told = here.acquire(terms_of(1min));
    world.advance(1s);
    EXPECT_FALSE(told->outcome);
    const auto when = world.now();
    ASSERT_TRUE(there.release(lease)->released);
    world.advance(200ms);
    ASSERT_TRUE(told->lease());
    EXPECT_LE(told->when, when + 150ms);
}

TEST_F(Mutex, AWaiterHasTheKeySoonAfterAnExpiryThatNobodyTells) {
    auto terms = terms_of();
    terms.lease.renew_every = 0s;
    const auto begun = world.now();
    ASSERT_TRUE(there.take(terms));
    there.line.plan = [](std::size_t, const auto&) { return fault::lose_request; };
    const auto told = here.acquire(terms_of(1min));
    world.advance(6s + 100ms);
    ASSERT_TRUE(told->lease());
    EXPECT_GE(told->when, begun + 6s);
}

TEST_F(Mutex, TheWaitIsOverAtExactlyItsTimeWhateverTheCalendarSays) {
    const auto lease = there.take();
    const auto begun = world.now();
    const auto told = here.acquire(terms_of(3s));
    world.advance(1s);
    world.store_clock().step_wall(std::chrono::hours{24});
    world.advance(1s);
    world.store_clock().step_wall(-std::chrono::hours{48});
    world.advance(1s - 1ns);
    EXPECT_FALSE(told->outcome);
    world.advance(1ns);
    ASSERT_TRUE(told->busy());
    EXPECT_EQ(told->when, begun + 3s);
    EXPECT_FALSE(told->outcome->holders.empty());
}

TEST_F(Mutex, WhoHasWaitedIsToldHowLongTheKeyIsHeldByThen) {
    const auto begun = world.now();
    const auto lease = there.take(terms_of(0s, 60s));
    world.advance(1s);
    const auto first = here.acquire(terms_of(3s));
    const auto second = here.acquire(terms_of(3s));
    world.advance(3s);
    for (const auto& told : {first, second}) {
        ASSERT_TRUE(told->busy());
        ASSERT_EQ(told->outcome->holders.size(), 1U);
        const auto& who = told->outcome->holders[0];
        // Both were asked for once, three seconds ago; the holder has not renewed since.
        EXPECT_EQ(who.held_for, world.now() - begun);
        EXPECT_EQ(who.remaining, 60s - (world.now() - begun));
    }
}

TEST_F(Mutex, TheWaitBehindACallerOfTheSameProcessIsOverInTimeToo) {
    const auto lease = here.take();
    const auto begun = world.now();
    const auto shorter = here.acquire(terms_of(1s));
    const auto longer = here.acquire(terms_of(2s));
    world.advance(10s);
    ASSERT_TRUE(shorter->busy());
    EXPECT_EQ(shorter->when, begun + 1s);
    ASSERT_TRUE(longer->busy());
    EXPECT_EQ(longer->when, begun + 2s);
}

TEST_F(Mutex, TheSecondOfALineIsOverInTimeToo) {
    const auto lease = there.take();
    const auto begun = world.now();
    const auto first = here.acquire(terms_of(20s));
    const auto second = here.acquire(terms_of(1s));
    world.advance(10s);
    ASSERT_TRUE(second->busy());
    EXPECT_EQ(second->when, begun + 1s);
    EXPECT_FALSE(first->outcome);
}

TEST_F(Mutex, TroubleIsNotBusyForThoseBehindEither) {
    here.line.plan = [](std::size_t, const auto&) { return fault::refuse; };
    const auto first = here.acquire(terms_of(10s));
    const auto second = here.acquire(terms_of(1s, 6s, 2s));
    world.advance(20s);
    ASSERT_TRUE(first->outcome);
    EXPECT_TRUE(first->outcome->error);
    ASSERT_TRUE(second->outcome);
    EXPECT_EQ(second->outcome->error, condition::retryable)
        << "nobody ever said that the key is held";
}

TEST_F(Mutex, AStoreThatDiesDuringTheWaitIsToldAsTrouble) {
    const auto lease = there.take();
    const auto told = here.acquire(terms_of(30s));
    world.advance(5s);
    here.line.plan = [](std::size_t, const auto&) { return fault::refuse; };
    world.advance(40s);
    ASSERT_TRUE(told->outcome);
    EXPECT_EQ(told->outcome->error, condition::retryable);
}

TEST_F(Mutex, ALostWakeUpCostsTimeAlone) {
    const auto lease = there.take(terms_of(0s, 60s));
    const auto told = here.acquire(terms_of(1min));
    world.advance(1s);
    // The release is executed while the waiter's own tries get lost.
    here.line.plan = [](std::size_t, const auto&) { return fault::refuse; };
    ASSERT_TRUE(there.release(lease)->released);
    world.advance(100ms);
    EXPECT_FALSE(told->outcome);
    here.line.plan = nullptr;
    world.advance(4s);
    EXPECT_TRUE(told->lease());
}

TEST_F(Mutex, NewcomersInALineCauseNoTriesOfTheirOwn) {
    const auto lease = there.take();
    const auto first = here.acquire(terms_of(1min));
    world.advance(100ms);
    const auto tries = here.line.count<core::acquire>();
    std::vector<process::ended_ptr> others;
    for (int number = 0; number < 50; ++number) {
        others.push_back(here.acquire(terms_of(1min)));
        world.advance(1ms);
    }
    EXPECT_LE(here.line.count<core::acquire>(), tries + 1)
        << "one of the process goes to the store";
}

// --- handing on ----------------------------------------------------------------------------------

TEST_F(Mutex, CallersOfOneProcessAreServedInTheirOrderWithGrowingFences) {
    auto terms = terms_of(10min);
    std::vector<process::ended_ptr> line;
    for (int number = 0; number < 20; ++number) {
        line.push_back(here.acquire(terms));
    }
    core::fence_number last = 0;
    for (auto& told : line) {
        world.run_until([&] { return told->outcome.has_value(); }, 1min);
        ASSERT_TRUE(told->lease());
        EXPECT_GT(told->lease()->fence(), last);
        last = told->lease()->fence();
        ASSERT_TRUE(here.release(told->lease())->released);
    }
    EXPECT_GE(here.keys.counters().handed_on, 18U);
    EXPECT_LE(here.line.count<core::acquire>(), 2U);
    world.advance(1min);
    EXPECT_TRUE(there.holders().empty());
}

TEST_F(Mutex, AProcessPassesALeaseOnAtMost64Times) {
    const auto line = stand_in_line(150, 50us);
    EXPECT_LE(line.served_before, 65);
    EXPECT_GE(line.served_before, 60);
    ASSERT_TRUE(world.run_until([&] { return line.outside->lease() != nullptr; }, 1s))
        << "then it is the other's turn";
}

TEST_F(Mutex, AProcessWithShortWorkPassesALeaseOnForTwoMilliseconds) {
    const auto line = stand_in_line(500, 10us);
    EXPECT_LE(line.served_before, 202);
    EXPECT_GE(line.served_before, 195);
    ASSERT_TRUE(world.run_until([&] { return line.outside->lease() != nullptr; }, 1s))
        << "then it is the other's turn";
}

TEST_F(Mutex, AProcessWithLongWorkDoesNotShutTheOthersOut) {
    const auto line = stand_in_line(20, 4ms);
    EXPECT_EQ(line.served_before, 3) << "the release after ten milliseconds is a real one";
    EXPECT_EQ(here.keys.counters().handed_on, 2U);
    ASSERT_TRUE(world.run_until([&] { return line.outside->lease() != nullptr; }, 1s));
}

TEST_F(Mutex, AStoreThatIsFarAwayIsAskedLessOften) {
    answers_after(4ms);
    const auto line = stand_in_line(40, 10ms);
    EXPECT_EQ(line.served_before, 20) << "fifty round trips of four milliseconds";
    ASSERT_TRUE(world.run_until([&] { return line.outside->lease() != nullptr; }, 1s));
}

TEST_F(Mutex, AStoreThatIsVeryFarAwayDoesNotShutTheOthersOut) {
    answers_after(300ms);
    const auto line = stand_in_line(40, 300ms);
    EXPECT_EQ(line.served_before, 4) << "the release after a second is a real one";
    ASSERT_TRUE(world.run_until([&] { return line.outside->lease() != nullptr; }, 3s));
}

TEST_F(Mutex, IsNotHandedOnWithARenewalInDoubt) {
    const auto first = here.acquire(terms_of(10min));
    const auto second = here.acquire(terms_of(10min));
    world.run_ready();
    ASSERT_TRUE(first->lease());
    here.line.plan = [](std::size_t, const faulty_store::seen_batch& batch) {
        return batch.which == core::lane::renewals ? fault::lose_request : fault::none;
    };
    ASSERT_TRUE(world.run_until([&] { return here.line.count<core::renew>() > 0; }, 10s));
    here.release(first->lease());
    world.run_ready();
    EXPECT_EQ(here.keys.counters().handed_on, 0U);
    ASSERT_TRUE(world.run_until([&] { return second->lease() != nullptr; }, 5s));
    EXPECT_GE(here.line.count<core::release>(), 1U);
}

TEST_F(Mutex, IsNotHandedOnWithARenewalGivenUpAsUnknown) {
    const auto first = here.acquire(terms_of(10min));
    const auto second = here.acquire(terms_of(10min));
    world.run_ready();
    ASSERT_TRUE(first->lease());
    here.line.plan = [](std::size_t, const faulty_store::seen_batch& batch) {
        return batch.which == core::lane::renewals ? fault::lose_request : fault::none;
    };
    ASSERT_TRUE(world.run_until([&] { return here.line.count<core::renew>() > 0; }, 10s));
    world.advance(1s + 6ms);  // its patience is over; the next try is not due yet
    ASSERT_EQ(here.line.count<core::renew>(), 1U);
    here.release(first->lease());
    EXPECT_EQ(here.keys.counters().handed_on, 0U);
}

TEST_F(Mutex, IsNotHandedOnWithLessThanHalfATtlLeft) {
    auto unrenewed = terms_of(10min, 10s);
    unrenewed.lease.renew_every = 0s;
    const auto first = here.acquire(unrenewed);
    const auto second = here.acquire(unrenewed);
    world.run_ready();
    ASSERT_TRUE(first->lease());
    world.advance(6s);
    here.release(first->lease());
    world.run_ready();
    EXPECT_EQ(here.keys.counters().handed_on, 0U);
    ASSERT_TRUE(second->lease()) << "it has a grant of its own";
    EXPECT_GE(second->lease()->deadline() - world.now(), 9s);
}

TEST_F(Mutex, AShorterTtlOfTheNextCallerHoldsFromItsFirstRenewal) {
    // The store learns of the shorter ttl by the first renewal. If that one's answer is lost, the
    // lease must not be believed to last as long as the first caller's would have.
    const auto first = here.acquire(terms_of(10min, 60s));
    const auto second = here.acquire(terms_of(10min, 6s));
    world.run_ready();
    ASSERT_TRUE(first->lease());
    here.release(first->lease());
    world.run_ready();
    ASSERT_TRUE(second->lease());
    ASSERT_EQ(here.keys.counters().handed_on, 1U);
    bool first_renewal = true;
    here.line.plan = [&](std::size_t, const faulty_store::seen_batch& batch) {
        if (batch.which != core::lane::renewals) {
            return fault::none;
        }
        return std::exchange(first_renewal, false) ? fault::lose_answer : fault::lose_request;
    };
    for (int step = 0; step < 700; ++step) {
        world.advance(100ms);
        if (second->lease()->held(world.now())) {
            ASSERT_EQ(there.holders().size(), 1U) << "held here, free in the store";
        }
    }
}

TEST_F(Mutex, TheExHolderStandsAsideWhenOthersWait) {
    const auto lease = here.take();
    const auto other = there.acquire(terms_of(1min));
    world.advance(100ms);
    here.release(lease);
    // At once again, as a loop would.
    const auto greedy = here.acquire();
    world.advance(1s);
    EXPECT_TRUE(other->lease()) << "a woken waiter comes first";
    EXPECT_TRUE(greedy->busy());
}

TEST_F(Mutex, TwoProcessesTakeTurns) {
    std::vector<int> order;
    core::fence_number last = 0;
    std::unique_ptr<core::timer> work_over;
    std::function<void(process&, int)> work = [&](process& who, int name) {
        who.keys.acquire("k", terms_of(10min), [&, name](const mutex_outcome& outcome) {
            if (outcome.error == make_error_code(errc::closed)) {
                return;
            }
            ASSERT_TRUE(outcome.lease) << outcome.error.message();
            EXPECT_GT(outcome.lease->fence(), last);
            last = outcome.lease->fence();
            order.push_back(name);
            if (order.size() < 60) {
                work_over = std::make_unique<core::timer>([&, name, lease = outcome.lease] {
                    who.keys.release(lease, [&, name](const release_reply&) {
                        world.view().exec.post([&, name] { work(who, name); });
                    });
                });
                world.time().arm(*work_over, world.now() + 10ms);
            }
        });
    };
    work(here, 1);
    work(there, 2);
    world.advance(1min);
    ASSERT_EQ(order.size(), 60U);
    here.keys.close();
    there.keys.close();
    world.run_ready();
    const auto ours = std::count(order.begin(), order.end(), 1);
    EXPECT_GE(ours, 20);
    EXPECT_LE(ours, 40);
}

// --- giving back ---------------------------------------------------------------------------------

TEST_F(Mutex, AReleaseIsToldOnceAndForAll) {
    const auto lease = here.take();
    EXPECT_TRUE(here.release(lease)->released);
    const auto again = here.release(lease);
    EXPECT_FALSE(again->released);
    EXPECT_FALSE(again->error);
    EXPECT_EQ(here.line.count<core::release>(), 1U);
    world.advance(1min);
    EXPECT_EQ(here.line.count<core::renew>(), 0U) << "no renewal after the release";
}

TEST_F(Mutex, AReleaseInDoubtIsCarriedOnInTheBackground) {
    const auto lease = here.take(terms_of(0s, 60s));
    std::size_t lost = 0;
    here.line.plan = [&](std::size_t, const auto&) {
        return lost++ < 2 ? fault::lose_request : fault::none;
    };
    const auto told = here.release(lease);
    ASSERT_TRUE(told);
    EXPECT_EQ(told->error, condition::outcome_unknown);
    world.advance(20s);
    EXPECT_TRUE(there.holders().empty());
}

TEST_F(Mutex, AResultInDoubtStaysSoWhenLaterTriesAreRefused) {
    const auto lease = here.take(terms_of());
    std::size_t tries = 0;
    here.line.plan = [&](std::size_t, const auto&) {
        return tries++ == 0 ? fault::doubt : fault::refuse;
    };
    std::optional<release_reply> told;
    here.keys.release(lease,
                      core::result_to_keep{.value = "r", .fresh = 1h, .keep = 1h},
                      [&](release_reply reply) { told = std::move(reply); });
    world.advance(10s);
    ASSERT_TRUE(told);
    EXPECT_GT(tries, 1U);
    EXPECT_EQ(told->error, condition::outcome_unknown);
    EXPECT_NE(told->detail.find("an earlier try"), std::string::npos) << told->detail;

    // Without one in doubt it is surely not kept.
    here.line.plan = {};
    const auto other = here.take(terms_of(), "other");
    ASSERT_TRUE(other);
    here.line.plan = [](std::size_t, const auto&) { return fault::refuse; };
    told.reset();
    here.keys.release(other,
                      core::result_to_keep{.value = "r", .fresh = 1h, .keep = 1h},
                      [&](release_reply reply) { told = std::move(reply); });
    world.advance(10s);
    ASSERT_TRUE(told);
    EXPECT_EQ(told->error, condition::retryable);
    here.line.plan = {};
}

TEST_F(Mutex, AReleaseOfALostLeaseFindsItNotHeld) {
    auto terms = terms_of();
    terms.lease.renew_every = 0s;
    const auto lease = here.take(terms);
    world.sleep_through(10s);
    const auto told = here.release(lease);
    EXPECT_FALSE(told->released);
    EXPECT_FALSE(told->error);
    EXPECT_TRUE(lease->lost_reason());
}

TEST_F(Mutex, AReleaseTellsWhatHadBecomeOfTheLease) {
    for (const bool with_result : {false, true}) {
        const auto lease = here.take(terms_of());
        here.batches.submit(core::revoke{.key = "k", .fence = lease->fence()},
                            1s,
                            world.now() + 1s,
                            [](const core::reply&) {});
        world.run_ready();
        EXPECT_FALSE(lease->lost_reason()) << "nobody has told it yet";
        std::optional<release_reply> told;
        auto hear = [&](release_reply reply) { told = std::move(reply); };
        if (with_result) {
            here.keys.release(lease, result_of("outcome", 1h, 1h), hear);
        } else {
            here.keys.release(lease, hear);
        }
        ASSERT_TRUE(world.run_until([&] { return told.has_value(); }, 10s));
        EXPECT_FALSE(told->released);
        EXPECT_FALSE(told->error);
        EXPECT_EQ(lease->lost_reason(), make_error_code(errc::lease_revoked));
    }
}

// --- cancelling ----------------------------------------------------------------------------------

namespace {

/// Runs at most `steps` tasks and timers. False: there were fewer.
bool run_steps(virtual_environment& world, std::size_t steps, core::instant end) {
    for (std::size_t step = 0; step < steps; ++step) {
        std::size_t looks = 0;
        // The condition is asked before each task or timer: true at the second asking means one was
        // run.
        if (!world.run_until([&] { return ++looks > 1; }, end - world.now()) ||
            world.now() >= end) {
            return false;
        }
    }
    return true;
}

}  // namespace

// Cancel after 0, 1, 2, ... steps, until a run is over before the cancel.
TEST_F(Mutex, CancelAtAnyStepLeavesNothingHeld) {
    for (const auto wait : {nanoseconds{0s}, nanoseconds{20s}}) {
        for (const bool held_at_first : {false, true}) {
            bool untouched = false;
            std::size_t steps = 0;
            for (; !untouched && steps < 400; ++steps) {
                virtual_environment other_world{steps + 1};
                process one{other_world, space + "-c" + std::to_string(steps)};
                process two{other_world, space + "-c" + std::to_string(steps)};
                if (held_at_first) {
                    auto short_terms = terms_of(0s, 2s);
                    short_terms.lease.renew_every = 0s;
                    ASSERT_TRUE(two.take(short_terms));
                }
                const auto told = one.acquire(terms_of(wait));
                const auto end = other_world.now() + 15s;
                untouched = !run_steps(other_world, steps, end) || told->outcome.has_value();
                if (const auto open = told->call.lock()) {
                    one.keys.cancel(open);
                }
                other_world.run_ready();
                ASSERT_EQ(told->times, 1U) << "told once, at once, at step " << steps;
                if (told->lease()) {
                    one.release(told->lease());  // the grant was on its way to the caller
                } else if (!untouched) {
                    const bool was_on_its_way = wait == 0s && told->busy();
                    ASSERT_TRUE(was_on_its_way ||
                                told->outcome->error == make_error_code(errc::cancelled))
                        << "step " << steps;
                }
                other_world.advance(3s);
                ASSERT_TRUE(two.holders().empty()) << "cancelled after " << steps << " steps";
                ASSERT_EQ(one.doubts.open(), 0U) << "step " << steps;
                ASSERT_TRUE(two.take());
            }
            ASSERT_TRUE(untouched) << "the loop never came to a run that needed no cancel";
            EXPECT_GT(steps, 2U);
        }
    }
}

// --- faults --------------------------------------------------------------------------------------

// Fail operation 1, then 2, ..., once and from then on, until a run is untouched. Nobody holds
// together, fences rise, and after the faults everything is free again.
TEST_F(Mutex, FaultsAtAnyOperationNeverMakeTwoHolders) {
    const fault kinds[] = {fault::refuse,
                           fault::deny,
                           fault::lose_request,
                           fault::lose_answer,
                           fault::doubt,
                           fault::delay_request,
                           fault::delay_answer,
                           fault::repeat};
    for (const auto kind : kinds) {
        for (const bool from_then_on : {false, true}) {
            bool touched = true;
            for (std::size_t failing = 1; touched && failing < 100; ++failing) {
                SCOPED_TRACE("fault " + std::to_string(static_cast<int>(kind)) + " at operation " +
                             std::to_string(failing) + (from_then_on ? " and all after it" : ""));
                touched = false;
                bool healed = false;
                virtual_environment other_world{failing};
                const auto name = space + "-f" + std::to_string(failing);
                process one{other_world, name};
                process two{other_world, name};
                std::size_t operation = 0;
                const auto plan = [&](std::size_t, const auto&) {
                    ++operation;
                    const bool hit =
                        !healed && (from_then_on ? operation >= failing : operation == failing);
                    touched = touched || hit;
                    return hit ? kind : fault::none;
                };
                one.line.plan = plan;
                two.line.plan = plan;
                one.line.delay = two.line.delay = 1700ms;

                core::fence_number last = 0;
                std::vector<lease_ptr> leases;
                const auto at_most_one = [&] {
                    std::size_t held = 0;
                    for (const auto& lease : leases) {
                        held += lease->held(other_world.now()) ? 1 : 0;
                    }
                    return held <= 1;
                };
                std::vector<process::ended_ptr> calls;
                for (auto* const who : {&one, &two, &one, &two, &one}) {
                    calls.push_back(who->acquire(terms_of(8s, 3s, 2s)));
                }
                std::vector<bool> seen(calls.size());
                const process* owners[] = {&one, &two, &one, &two, &one};
                for (int tick = 0; tick < 200; ++tick) {
                    other_world.advance(50ms);
                    for (std::size_t at = 0; at < calls.size(); ++at) {
                        if (!seen[at] && calls[at]->outcome) {
                            seen[at] = true;
                            if (const auto lease = calls[at]->lease()) {
                                EXPECT_GT(lease->fence(), last);
                                last = lease->fence();
                                leases.push_back(lease);
                            }
                        }
                    }
                    ASSERT_TRUE(at_most_one());
                    if (tick % 20 == 19 && !leases.empty()) {
                        auto* const owner = const_cast<process*>(owners[std::distance(
                            calls.begin(),
                            std::find_if(calls.begin(), calls.end(), [&](const auto& call) {
                                return call->lease() == leases.back();
                            }))]);
                        owner->keys.release(leases.back(), [](const release_reply&) {});
                    }
                }
                for (const auto& call : calls) {
                    ASSERT_EQ(call->times, 1U) << "each call ends, once";
                }
                healed = true;
                for (std::size_t at = 0; at < calls.size(); ++at) {
                    if (calls[at]->lease()) {
                        const_cast<process*>(owners[at])
                            ->keys.release(calls[at]->lease(), [](const release_reply&) {});
                    }
                }
                other_world.advance(10s);
                ASSERT_TRUE(one.holders().empty());
                ASSERT_EQ(one.doubts.open() + two.doubts.open(), 0U);
                const auto after = one.take();
                ASSERT_TRUE(after);
                EXPECT_GT(after->fence(), last);
            }
            ASSERT_FALSE(touched) << "the loop never came to an untouched run";
        }
    }
}

// --- the end -------------------------------------------------------------------------------------

TEST_F(Mutex, CloseEndsEveryCall) {
    const auto lease = there.take();
    std::vector<process::ended_ptr> calls;
    for (int number = 0; number < 3; ++number) {
        calls.push_back(here.acquire(terms_of(1min)));
    }
    calls.push_back(here.acquire());
    here.keys.close();
    calls.push_back(here.acquire());
    EXPECT_FALSE(calls.back()->outcome);
    world.run_ready();
    for (const auto& call : calls) {
        ASSERT_EQ(call->times, 1U);
        EXPECT_EQ(call->outcome->error, make_error_code(errc::closed));
    }
    world.advance(1min);
    EXPECT_EQ(here.doubts.open(), 0U);
}

TEST_F(Mutex, DoesNotRememberKeysThatItIsDoneWith) {
    const auto armed = world.time().armed();
    for (int number = 0; number < 2'000; ++number) {
        const auto key = "job-" + std::to_string(number);
        const auto lease = here.take(terms_of(), key);
        ASSERT_TRUE(lease);
        if (number % 2 == 0) {
            const auto waiting = there.acquire(terms_of(10ms), key);
            world.advance(11ms);
            ASSERT_TRUE(waiting->busy());
        }
        here.release(lease);
    }
    world.advance(10s);
    EXPECT_EQ(here.keys.known_keys(), 0U);
    EXPECT_EQ(there.keys.known_keys(), 0U);
    EXPECT_EQ(world.time().armed(), armed);
}

TEST_F(Mutex, ALeaseGivenAwayIsLeftAloneAndItsKeyWaitedFor) {
    const auto lease = here.take();
    const auto next = here.acquire(terms_of(1min));
    world.run_ready();
    EXPECT_TRUE(here.keys.give_away(lease));
    EXPECT_FALSE(here.keys.give_away(lease));
    world.advance(1s);
    EXPECT_EQ(here.line.count<core::release>(), 0U);
    EXPECT_FALSE(lease->held(world.now()));
    EXPECT_FALSE(next->outcome);
    world.advance(6s);
    EXPECT_TRUE(next->lease()) << "it was not renewed";
}

}  // namespace dibs::recipes
