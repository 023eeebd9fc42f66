// SPDX-License-Identifier: Apache-2.0
// Leases are renewed in time and together, and a loss is told once, with its reason, whatever the
// store does.

#include "core/watchdog.hpp"

#include "support/manual_target.hpp"
#include "support/verbs.hpp"
#include "support/virtual_environment.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

namespace dibs::core {

namespace {

using namespace std::chrono_literals;
using namespace dibs::testing;
using lease_ptr = watchdog::lease_ptr;

constexpr nanoseconds ttl = 9s;

class Watchdog : public ::testing::Test {
  protected:
    static lease_terms usual_terms() {
        lease_terms terms;
        terms.ttl = ttl;
        terms.renew_every = ttl / 3;
        return terms;
    }

    lease_ptr guard(lease_terms terms = usual_terms(), std::uint64_t number = 1) {
        auto lease = std::make_shared<lease_state>("k" + std::to_string(number),
                                                   holder_of(number),
                                                   number,
                                                   terms,
                                                   world.now(),
                                                   local_deadline(world.now(), terms.ttl));
        dog.guard(lease, world.now());
        return lease;
    }

    /// How the store answers from now on; nullopt: not at all.
    using script = std::function<std::optional<answer>(const entry&)>;

    void answer_by(script how) { how_ = std::move(how); }

    /// Lets time pass, and answers what comes in.
    void pass(nanoseconds by) {
        const auto end = world.now() + by;
        while (world.now() < end) {
            world.advance(std::min<nanoseconds>(1ms, end - world.now()));
            answer_new();
        }
    }
    void answer_new() {
        for (; answered_ < target.batches.size(); ++answered_) {
            auto& batch = target.batches[answered_];
            answers given;
            for (const auto& one : batch.entries) {
                auto said = how_(one);
                if (!said) {
                    break;
                }
                given.push_back(*said);
            }
            if (given.size() == batch.entries.size()) {
                batch.done(given);
                world.run_ready();
            }
        }
    }

    [[nodiscard]] std::vector<instant> renewals() const {
        std::vector<instant> sent;
        for (const auto& batch : target.batches) {
            if (batch.count<renew>() > 0) {
                sent.push_back(batch.when);
            }
        }
        return sent;
    }
    [[nodiscard]] std::size_t releases() const {
        std::size_t found = 0;
        for (const auto& batch : target.batches) {
            found += batch.count<release>();
        }
        return found;
    }

    static std::optional<answer> renewed(const entry& asked) {
        return answer_of(std::holds_alternative<renew>(asked.what) ? verdict::renewed
                                                                   : verdict::released);
    }
    static std::optional<answer> silence(const entry&) { return std::nullopt; }
    static script not_held(loss why) {
        return [why](const entry&) {
            auto given = answer_of(verdict::not_held);
            given.lost = why;
            return given;
        };
    }

    virtual_environment world;
    manual_target target{world.view()};
    batcher batches{world.view(), target};
    undo doubts{world.view(), batches};
    std::vector<lease_ptr> lost;
    std::size_t failures_told = 0;
    watchdog dog{
        world.view(),
        batches,
        doubts,
        {.lost = [this](const lease_ptr& lease) { lost.push_back(lease); },
         .renewal_failed = [this](const lease_state&, const answer&) { ++failures_told; }}};

  private:
    script how_ = renewed;
    std::size_t answered_ = 0;
};

}  // namespace

TEST_F(Watchdog, RenewsAtAThirdOfTheTtlWithJitter) {
    const auto lease = guard();
    auto last = world.now();
    pass(60s);
    const auto sent = renewals();
    ASSERT_GE(sent.size(), 18U);
    std::set<nanoseconds> pauses;
    for (const auto when : sent) {
        EXPECT_GE(when - last, 2700ms);
        EXPECT_LE(when - last, 3300ms + 2ms);
        pauses.insert(when - last);
        last = when;
    }
    EXPECT_GT(pauses.size(), 5U) << "always the same pause is no jitter";
    EXPECT_TRUE(lease->held(world.now()));
    EXPECT_EQ(lease->deadline(), local_deadline(sent.back(), ttl));
    EXPECT_EQ(dog.counters().renewed, sent.size());
    EXPECT_TRUE(lost.empty());
}

TEST_F(Watchdog, ADoubtOfTheStoreIsLookedIntoAtOnce) {
    const auto lease = guard();
    const auto second = guard(usual_terms(), 2);
    pass(10ms);
    ASSERT_TRUE(renewals().empty());
    dog.doubt_all();
    pass(50ms);
    EXPECT_EQ(renewals().size(), 1U) << "both in one batch";
    EXPECT_TRUE(lease->held(world.now()));
    answer_by(not_held(loss::gone));
    dog.doubt_all();
    pass(50ms);
    EXPECT_EQ(lost.size(), 2U) << "not a third of a ttl later";
    EXPECT_EQ(lease->lost_reason(), errc::lease_gone);
}

TEST_F(Watchdog, RenewalsDueTogetherShareABatchAndStayTogether) {
    std::vector<lease_ptr> leases;
    for (std::uint64_t number = 1; number <= 50; ++number) {
        leases.push_back(guard(usual_terms(), number));
    }
    pass(60s);
    ASSERT_GE(renewals().size(), 18U);
    for (const auto& batch : target.batches) {
        EXPECT_EQ(batch.count<renew>(), 50U);
    }
    EXPECT_LE(renewals().size(), 23U);
}

TEST_F(Watchdog, TenThousandLeasesLiveInFullBatches) {
    std::vector<lease_ptr> leases;
    for (std::uint64_t number = 1; number <= 10'000; ++number) {
        leases.push_back(guard(usual_terms(), number));
    }
    pass(2 * ttl);
    for (const auto& lease : leases) {
        ASSERT_TRUE(lease->held(world.now()));
    }
    EXPECT_GE(dog.counters().renewed, 50'000U);
    const auto sent = dog.counters().renewed;
    EXPECT_LE(target.batches.size(), sent / 200) << "batches of hundreds";
}

TEST_F(Watchdog, DeclaresLossAtTheDeadlineWhileARenewalHangs) {
    answer_by(silence);
    const auto lease = guard();
    const auto deadline = lease->deadline();
    bool told = false;
    const std::stop_callback on_lost(lease->lost(), [&] { told = true; });
    world.advance(deadline - world.now() - 1ns);
    EXPECT_TRUE(lease->held(world.now()));
    EXPECT_FALSE(told);
    EXPECT_GE(renewals().size(), 1U) << "one hangs";
    world.advance(1ns);
    EXPECT_TRUE(told);
    EXPECT_EQ(lease->lost_reason(), make_error_code(errc::lease_expired));
    EXPECT_EQ(lost, std::vector<lease_ptr>{lease});
    EXPECT_EQ(dog.counters().lost, 1U);
    EXPECT_TRUE(dog.guarded().empty());
}

TEST_F(Watchdog, ALateAnswerNeverRevives) {
    answer_by(silence);
    const auto lease = guard();
    world.advance(ttl);
    ASSERT_FALSE(lease->held(world.now()));
    for (auto& batch : target.batches) {
        if (batch.count<renew>() > 0) {
            batch.answer_all(answer_of(verdict::renewed));
        }
    }
    world.run_ready();
    EXPECT_FALSE(lease->held(world.now()));
    EXPECT_EQ(lease->lost_reason(), make_error_code(errc::lease_expired));
    EXPECT_EQ(lost.size(), 1U);
}

TEST_F(Watchdog, WhatTheStoreMayStillHaveOfALostLeaseIsReleased) {
    answer_by([](const entry& asked) -> std::optional<answer> {
        if (std::holds_alternative<renew>(asked.what)) {
            return std::nullopt;
        }
        return answer_of(verdict::released);
    });
    guard();
    pass(ttl + 1s);
    EXPECT_EQ(lost.size(), 1U);
    EXPECT_GE(releases(), 1U);
    EXPECT_EQ(doubts.open(), 0U);
}

TEST_F(Watchdog, TriesSeveralTimesWithinTheTtl) {
    answer_by([](const entry&) { return refused(errc::store_unreachable, "no connection"); });
    const auto lease = guard();
    pass(lease->deadline() - world.now() - 1ms);
    const auto sent = renewals();
    EXPECT_GE(sent.size(), 4U);
    for (std::size_t at = 1; at < sent.size(); ++at) {
        EXPECT_LE(sent[at] - sent[at - 1], ttl / 6 + 2ms);
    }
    EXPECT_TRUE(lease->held(world.now()));
    EXPECT_EQ(failures_told, sent.size());
    EXPECT_EQ(dog.counters().renew_failed, sent.size());

    answer_by(renewed);
    // Too late for the next try to be in time is the deadline alone: one good answer before it
    // would have done.
    pass(2s);
    EXPECT_EQ(lost.size(), 1U);
}

TEST_F(Watchdog, OneGoodAnswerAfterManyBadOnesKeepsTheLease) {
    answer_by([](const entry&) { return refused(errc::store_unreachable, "no connection"); });
    const auto lease = guard();
    pass(7s);
    answer_by(renewed);
    pass(30s);
    EXPECT_TRUE(lease->held(world.now()));
    EXPECT_TRUE(lost.empty());
}

TEST_F(Watchdog, WhatTheStoreSaidToTheLastRenewalIsKnownUntilOneGoesWell) {
    answer_by([](const entry&) { return refused(errc::store_unreachable, "no connection"); });
    const auto lease = guard();
    EXPECT_EQ(lease->renewal_trouble(), "");
    pass(ttl / 2);
    EXPECT_EQ(lease->renewal_trouble(), "no connection");
    answer_by(renewed);
    pass(ttl / 2);
    EXPECT_EQ(lease->renewal_trouble(), "");
    answer_by([](const entry&) { return refused(errc::store_unreachable, "gone again"); });
    pass(2 * ttl);
    EXPECT_EQ(lease->lost_reason(), errc::lease_expired);
    EXPECT_EQ(lease->renewal_trouble(), "gone again") << "also after the loss";
}

TEST_F(Watchdog, AHungStoreIsAskedAgainBeforeTheDeadline) {
    answer_by(silence);
    const auto lease = guard();
    pass(lease->deadline() - world.now() - 1ms);
    EXPECT_GE(renewals().size(), 2U);
}

TEST_F(Watchdog, TellsWhatBecameOfTheLease) {
    const struct {
        loss store;
        errc told;
        bool may_be_there;
    } cases[] = {{loss::taken, errc::lease_taken, false},
                 {loss::revoked, errc::lease_revoked, false},
                 {loss::gone, errc::lease_gone, false},
                 {loss::replaced, errc::store_replaced, false},
                 {loss::expired, errc::lease_expired, true}};
    for (const auto& one : cases) {
        answer_by(not_held(one.store));
        const auto lease = guard();
        pass(4s);
        EXPECT_EQ(lease->lost_reason(), make_error_code(one.told));
        EXPECT_TRUE(lease->lost().stop_requested());
        EXPECT_FALSE(lease->held(world.now())) << "before its deadline";
    }
    EXPECT_EQ(lost.size(), std::size(cases));
}

TEST_F(Watchdog, TheRenewalOfAnotherGrantIsALoss) {
    // Its grant is gone, and a repeated acquire of the same holder was granted anew.
    answer_by([](const entry& asked) {
        auto given = answer_of(std::holds_alternative<renew>(asked.what) ? verdict::renewed
                                                                         : verdict::released);
        given.fences = {7, 9};
        return std::optional{given};
    });
    const auto kept = guard(usual_terms(), 8);
    pass(4s);
    EXPECT_TRUE(kept->held(world.now())) << "its fence is one of the block";
    EXPECT_EQ(releases(), 0U);
    const auto lease = guard(usual_terms(), 6);
    pass(4s);
    EXPECT_FALSE(lease->held(world.now())) << "before its deadline";
    EXPECT_EQ(lease->lost_reason(), make_error_code(errc::lease_gone));
    EXPECT_EQ(lost.size(), 1U);
    EXPECT_EQ(releases(), 1U) << "nobody wants what was granted";
    EXPECT_EQ(doubts.open(), 0U);
}

TEST_F(Watchdog, ALateAnswerOfAnotherGrantIsALossToo) {
    const auto lease = guard(usual_terms(), 6);
    answer_by(silence);
    pass(3500ms + ttl / 6);
    ASSERT_TRUE(lease->held(world.now()));
    ASSERT_GE(target.batches.size(), 2U) << "the first one was given up";
    auto given = answer_of(verdict::renewed);
    given.fences = {7, 9};
    target.batches.front().answer_all(given);
    world.run_ready();
    EXPECT_EQ(lease->lost_reason(), make_error_code(errc::lease_gone));
    EXPECT_EQ(releases(), 1U);
}

TEST_F(Watchdog, TellsThatTheProcessSlept) {
    const auto lease = guard();
    world.sleep_through(10min);
    EXPECT_FALSE(lease->held(world.now()));
    EXPECT_EQ(lost.size(), 1U);
    auto other = guard(usual_terms(), 2);
    world.sleep_through(10min);
    EXPECT_EQ(other->lost_reason(), make_error_code(errc::holder_was_asleep));
}

TEST_F(Watchdog, ASleepShorterThanTheTtlLosesNothing) {
    const auto lease = guard();
    pass(3500ms);
    world.sleep_through(7s);
    answer_new();
    pass(10s);
    EXPECT_TRUE(lease->held(world.now()));
}

TEST_F(Watchdog, MaxHoldIsTheLongestTimeInAll) {
    auto terms = usual_terms();
    terms.max_hold = 25s;
    const auto lease = guard(terms);
    const auto end = world.now() + 25s;
    pass(25s - 1ms);
    EXPECT_TRUE(lease->held(world.now()));
    EXPECT_LE(lease->deadline(), end);
    pass(1ms);
    EXPECT_FALSE(lease->held(world.now()));
    EXPECT_EQ(lease->lost_reason(), make_error_code(errc::max_hold_reached));
    EXPECT_TRUE(lease->lost().stop_requested());
    pass(1s);
    EXPECT_EQ(releases(), 1U) << "it is given back";
    const auto asked = target.batches.size();
    pass(1min);
    EXPECT_EQ(target.batches.size(), asked);
}

TEST_F(Watchdog, MaxHoldShorterThanTheTtlCounts) {
    auto terms = usual_terms();
    terms.max_hold = 2s;
    const auto lease = guard(terms);
    pass(2s);
    EXPECT_FALSE(lease->held(world.now()));
    EXPECT_EQ(lease->lost_reason(), make_error_code(errc::max_hold_reached));
}

TEST_F(Watchdog, NoticeComesBeforeTheDeadlineOrMaxHold) {
    auto terms = usual_terms();
    terms.notice = 2s;
    terms.renew_every = 0ns;
    const auto unrenewed = guard(terms);
    world.advance(unrenewed->deadline() - 2s - world.now() - 1ns);
    EXPECT_FALSE(unrenewed->lost().stop_requested());
    world.advance(1ns);
    EXPECT_TRUE(unrenewed->lost().stop_requested());
    EXPECT_TRUE(unrenewed->held(world.now())) << "there is time left to stop";
    EXPECT_TRUE(target.batches.empty()) << "without renewals";

    terms = usual_terms();
    terms.notice = 2s;
    terms.max_hold = 20s;
    const auto limited = guard(terms, 2);
    pass(18s - 1ms);
    EXPECT_FALSE(limited->lost().stop_requested());
    pass(2ms);
    EXPECT_TRUE(limited->lost().stop_requested());
    EXPECT_TRUE(limited->held(world.now()));
}

TEST_F(Watchdog, ANoticeIsNotGivenWhileRenewalsSucceed) {
    auto terms = usual_terms();
    terms.notice = 4s;
    const auto lease = guard(terms);
    pass(1min);
    EXPECT_FALSE(lease->lost().stop_requested());
}

TEST_F(Watchdog, LostIsToldExactlyOnce) {
    auto terms = usual_terms();
    terms.notice = 3s;
    answer_by(silence);
    const auto lease = guard(terms);
    std::size_t told = 0;
    const std::stop_callback on_lost(lease->lost(), [&] { ++told; });
    pass(2 * ttl);
    dog.lose(lease, errc::closed);
    pass(1s);
    EXPECT_EQ(told, 1U);
    EXPECT_EQ(lost.size(), 1U);
    EXPECT_EQ(lease->lost_reason(), make_error_code(errc::lease_expired));
}

TEST_F(Watchdog, IsQuietAfterTheLeaseIsForgotten) {
    const auto lease = guard();
    pass(5s);
    const auto sent = target.batches.size();
    ASSERT_TRUE(lease->end_by_release());
    EXPECT_TRUE(dog.forget(*lease));
    EXPECT_FALSE(dog.forget(*lease));
    pass(1min);
    EXPECT_EQ(target.batches.size(), sent);
    EXPECT_FALSE(lease->lost().stop_requested());
    EXPECT_TRUE(lost.empty());
}

TEST_F(Watchdog, ARenewalThatIsQueuedLeavesWithTheLease) {
    answer_by(silence);
    const auto first = guard();
    const auto second = guard(usual_terms(), 2);
    world.advance(3300ms);
    ASSERT_EQ(target.batches.size(), 1U);
    dog.renew_now(first, ttl, [](const reply&) {});
    second->end_by_release();
    dog.forget(*second);
    target.batches[0].answer_all(answer_of(verdict::renewed));
    world.run_ready();
    for (std::size_t at = 1; at < target.batches.size(); ++at) {
        for (const auto& one : target.batches[at].entries) {
            EXPECT_NE(key_of(one.what), "k2");
        }
    }
}

// --- what a reader finds first -------------------------------------------------------------------

TEST_F(Watchdog, ALossThatAReaderMadeFinalIsToldAtTheNextAnswer) {
    answer_by(silence);
    const auto lease = guard();
    world.advance(3300ms);
    ASSERT_EQ(target.batches.size(), 1U);
    // A reader on another thread, whose clock is ahead of the executor's by the time that a task
    // may wait.
    EXPECT_FALSE(lease->held(lease->deadline()));
    target.batches[0].answer_all(answer_of(verdict::renewed));
    world.run_ready();
    EXPECT_TRUE(lease->lost().stop_requested());
    EXPECT_EQ(lost.size(), 1U);
    EXPECT_TRUE(dog.guarded().empty()) << "nobody renews what nobody holds";
}

// --- renewals that the holder asks for -----------------------------------------------------------

TEST_F(Watchdog, AManualRenewalMayBeLonger) {
    const auto lease = guard();
    pass(1s);
    std::vector<reply> told;
    dog.renew_now(lease, 60s, [&](const reply& heard) { told.push_back(heard); });
    const auto sent = world.now();
    pass(10ms);
    ASSERT_EQ(told.size(), 1U);
    EXPECT_EQ(told[0].given.what, verdict::renewed);
    EXPECT_EQ(lease->deadline(), local_deadline(sent, 60s));
    EXPECT_EQ(std::get<renew>(target.batches.back().entries[0].what).ttl, 60s);
    pass(30s);
    EXPECT_EQ(std::get<renew>(target.batches.back().entries[0].what).ttl, 60s)
        << "later ones use it too";
}

TEST_F(Watchdog, AManualRenewalMayBeShorter) {
    const auto lease = guard();
    pass(1s);
    const auto sent = world.now();
    dog.renew_now(lease, 3s, [](const reply&) {});
    pass(5ms);
    EXPECT_EQ(lease->deadline(), local_deadline(sent, 3s));
    pass(20s);
    EXPECT_TRUE(lease->held(world.now())) << "renewed often enough for the new ttl";
}

TEST_F(Watchdog, AShorterRenewalWithoutAnswerCountsAsDone) {
    // The store may have shortened the lease: to rely on the old deadline would be to hold what
    // somebody else has.
    answer_by(silence);
    const auto lease = guard();
    pass(1s);
    const auto sent = world.now();
    dog.renew_now(lease, 3s, [](const reply&) {});
    EXPECT_LE(lease->deadline(), local_deadline(sent, 3s));
    pass(3s);
    EXPECT_FALSE(lease->held(world.now()));
    EXPECT_TRUE(lease->lost().stop_requested()) << "told at the new deadline, not at the old one";
}

TEST_F(Watchdog, AShortRenewalAnsweredLateDoesNotProlongByTheLongTtl) {
    answer_by(silence);
    auto terms = usual_terms();
    terms.ttl = 60s;
    terms.renew_every = 20s;
    const auto lease = guard(terms);
    world.advance(1s);
    dog.renew_now(lease, 12s, [](const reply&) {});
    const auto sent = world.now();
    world.advance(2500ms);  // its patience of 2 s is over
    ASSERT_EQ(target.batches.size(), 1U);
    target.batches[0].answer_all(answer_of(verdict::renewed));
    world.run_ready();
    EXPECT_LE(lease->deadline(), local_deadline(sent, 12s));
}

TEST_F(Watchdog, SeveralWishesAreGrantedInTurn) {
    const auto lease = guard();
    pass(1s);
    std::vector<int> told;
    dog.renew_now(lease, 20s, [&](const reply&) { told.push_back(1); });
    dog.renew_now(lease, 30s, [&](const reply&) { told.push_back(2); });
    dog.renew_now(lease, 40s, [&](const reply&) { told.push_back(3); });
    pass(10ms);
    EXPECT_EQ(told, (std::vector<int>{1, 2, 3}));
    EXPECT_EQ(lease->terms.ttl, 40s);
}

TEST_F(Watchdog, AWishForALeaseThatEndsIsAnswered) {
    answer_by(silence);
    const auto lease = guard();
    std::vector<reply> told;
    dog.renew_now(lease, 20s, [&](const reply& heard) { told.push_back(heard); });
    dog.renew_now(lease, 20s, [&](const reply& heard) { told.push_back(heard); });
    lease->end_by_release();
    dog.forget(*lease);
    EXPECT_EQ(told.size(), 2U);
    dog.renew_now(lease, 20s, [&](const reply& heard) { told.push_back(heard); });
    ASSERT_EQ(told.size(), 3U);
    EXPECT_EQ(told[2].given.error, make_error_code(errc::not_held));
}

TEST_F(Watchdog, ARefusedWishTellsTheLossOfTheLease) {
    answer_by(not_held(loss::taken));
    const auto lease = guard();
    std::vector<reply> told;
    dog.renew_now(lease, 20s, [&](const reply& heard) { told.push_back(heard); });
    pass(5ms);
    ASSERT_EQ(told.size(), 1U);
    EXPECT_EQ(told[0].given.what, verdict::not_held);
    EXPECT_EQ(lease->lost_reason(), make_error_code(errc::lease_taken));
}

TEST_F(Watchdog, HandingOverChangesTheAttachment) {
    const auto lease = guard();
    pass(1s);
    renew::change into;
    into.holder = holder_of(77);
    into.attached = attachment::detached;
    bool told = false;
    dog.change(
        lease, into, [&](const reply& heard) { told = heard.given.what == verdict::renewed; });
    pass(5ms);
    ASSERT_TRUE(told);
    const auto& asked = std::get<renew>(target.batches.back().entries[0].what);
    EXPECT_EQ(asked.holder, holder_of(1));
    ASSERT_TRUE(asked.adopt);
    EXPECT_EQ(asked.adopt->holder, holder_of(77));
    EXPECT_EQ(lease->holder, holder_of(77));
    EXPECT_FALSE(lease->terms.attached);
    pass(5s);
    EXPECT_EQ(std::get<renew>(target.batches.back().entries[0].what).holder, holder_of(77));
    EXPECT_TRUE(lease->held(world.now()));
}

// --- doubt ---------------------------------------------------------------------------------------

TEST_F(Watchdog, ARenewalIsInDoubtUntilItsOwnAnswer) {
    answer_by(silence);
    const auto lease = guard();
    EXPECT_FALSE(dog.in_doubt(*lease));
    world.advance(3300ms);
    ASSERT_EQ(target.batches.size(), 1U);
    EXPECT_TRUE(dog.in_doubt(*lease));
    world.advance(ttl / 6 + 10ms);
    EXPECT_TRUE(dog.in_doubt(*lease)) << "patience is over, and it may still be executed";
    for (auto& batch : std::vector<std::size_t>{0, 1}) {
        if (batch < target.batches.size()) {
            target.batches[batch].answer_all(answer_of(verdict::renewed));
        }
    }
    world.run_ready();
    EXPECT_FALSE(dog.in_doubt(*lease));
}

TEST_F(Watchdog, ALateAnswerProlongsALeaseThatIsStillHeld) {
    answer_by(silence);
    const auto lease = guard();
    world.advance(3300ms);
    ASSERT_EQ(target.batches.size(), 1U);
    const auto sent = target.batches[0].when;
    world.advance(ttl / 6 + 6ms);
    target.batches[0].answer_all(answer_of(verdict::renewed));
    EXPECT_EQ(lease->deadline(), local_deadline(sent, ttl)) << "by when that very renewal was sent";
}

TEST_F(Watchdog, AnOlderAnswerDoesNotMoveTheDeadlineBack) {
    answer_by(silence);
    const auto lease = guard();
    world.advance(3300ms);
    ASSERT_EQ(target.batches.size(), 1U);
    pass(2500ms);
    ASSERT_GE(target.batches.size(), 2U);
    const auto newer = target.batches[1].when;
    target.batches[1].answer_all(answer_of(verdict::renewed));
    ASSERT_EQ(lease->deadline(), local_deadline(newer, ttl));
    target.batches[0].answer_all(answer_of(verdict::renewed));
    EXPECT_EQ(lease->deadline(), local_deadline(newer, ttl));
}

}  // namespace dibs::core
