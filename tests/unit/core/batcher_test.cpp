// SPDX-License-Identifier: Apache-2.0
// How entries are collected into batches, and that nothing waits for an answer that does not come.

#include "core/batcher.hpp"

#include "support/manual_target.hpp"
#include "support/verbs.hpp"
#include "support/virtual_environment.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace dibs::core {

namespace {

using namespace std::chrono_literals;
using namespace dibs::testing;

class Batcher : public ::testing::Test {
  protected:
    struct heard {
        std::vector<reply> replies;
        [[nodiscard]] bool none() const { return replies.empty(); }
        [[nodiscard]] const answer& last() const { return replies.at(replies.size() - 1).given; }
    };
    using heard_ptr = std::shared_ptr<heard>;

    batcher::ticket submit(verb what,
                           const heard_ptr& to,
                           nanoseconds patience = 1s,
                           nanoseconds give_up = 1min) {
        return batches.submit(std::move(what), patience, world.now() + give_up, [to](reply told) {
            to->replies.push_back(std::move(told));
        });
    }
    heard_ptr submit(verb what) {
        auto to = std::make_shared<heard>();
        submit(std::move(what), to);
        return to;
    }
    static acquire acquire_number(unsigned number) {
        return acquire_of("k" + std::to_string(number), holder_of(number));
    }

    virtual_environment world;
    manual_target target{world.view()};
    batcher batches{world.view(), target};
};

}  // namespace

TEST_F(Batcher, ALoneEntryLeavesAtOnce) {
    const auto sent = world.now();
    const auto told = submit(acquire_number(1));
    world.run_ready();
    ASSERT_EQ(target.batches.size(), 1U);
    EXPECT_EQ(target.batches[0].entries.size(), 1U);
    EXPECT_EQ(target.batches[0].which, lane::others);
    EXPECT_EQ(world.now(), sent);
    EXPECT_EQ(batches.in_flight(), 1U);
    world.advance(10ms);
    target.batches[0].answer_all(answer_of(verdict::granted));
    ASSERT_EQ(told->replies.size(), 1U);
    EXPECT_EQ(told->last().what, verdict::granted);
    EXPECT_EQ(told->replies[0].sent, sent) << "the deadline counts from before the batch left";
    EXPECT_TRUE(told->replies[0].final);
    EXPECT_TRUE(batches.idle());
}

TEST_F(Batcher, EntriesOfOneTurnShareABatch) {
    submit(acquire_number(1));
    submit(acquire_number(2));
    world.run_ready();
    ASSERT_EQ(target.batches.size(), 1U);
    EXPECT_EQ(target.batches[0].entries.size(), 2U);
}

TEST_F(Batcher, WhatComesWhileABatchIsUnderWaySharesTheNext) {
    submit(acquire_number(1));
    world.run_ready();
    std::vector<heard_ptr> told;
    for (unsigned number = 2; number < 7; ++number) {
        told.push_back(submit(acquire_number(number)));
        world.advance(1ms);
    }
    ASSERT_EQ(target.batches.size(), 1U);
    target.batches[0].answer_all(answer_of(verdict::granted));
    world.run_ready();
    ASSERT_EQ(target.batches.size(), 2U);
    ASSERT_EQ(target.batches[1].entries.size(), 5U);
    EXPECT_EQ(target.batches[1].as<acquire>(0).key, "k2") << "in the order in which they came";
    EXPECT_EQ(target.batches[1].as<acquire>(4).key, "k6");
    answers given;
    for (const auto what :
         {verdict::held, verdict::granted, verdict::done, verdict::blocked, verdict::not_ready}) {
        given.push_back(answer_of(what));
    }
    target.batches[1].done(given);
    EXPECT_EQ(told[0]->last().what, verdict::held);
    EXPECT_EQ(told[1]->last().what, verdict::granted);
    EXPECT_EQ(told[4]->last().what, verdict::not_ready) << "each entry gets its own answer";
}

TEST_F(Batcher, WhatMayLingerWaitsForAFullBatch) {
    const auto linger = [&](unsigned from, unsigned to) {
        for (auto number = from; number < to; ++number) {
            batches.submit(
                renew_of("k" + std::to_string(number), holder_of(number)),
                1s,
                world.now() + 1min,
                [](reply) {},
                100ms);
        }
    };
    linger(0, 200);
    world.advance(99ms);
    ASSERT_TRUE(target.batches.empty());
    linger(200, 300);
    world.run_ready();
    ASSERT_EQ(target.batches.size(), 1U) << "a full one leaves";
    EXPECT_EQ(target.batches[0].entries.size(), max_batch_entries);
    target.batches[0].answer_all(answer_of(verdict::renewed));
    world.advance(50ms);
    EXPECT_EQ(target.batches.size(), 1U) << "those that are left over began to wait later";
    world.advance(50ms);
    ASSERT_EQ(target.batches.size(), 2U);
    EXPECT_EQ(target.batches[1].entries.size(), 300 - max_batch_entries);
    target.batches[1].answer_all(answer_of(verdict::renewed));

    linger(0, 10);
    world.advance(1ms);
    EXPECT_EQ(target.batches.size(), 2U);
    submit(renew_of("at once", holder_of(1)));
    world.run_ready();
    ASSERT_EQ(target.batches.size(), 3U) << "one that waits for nobody takes the others along";
    EXPECT_EQ(target.batches[2].entries.size(), 11U);
}

TEST_F(Batcher, WhatIsWorthAStepOfItsOwnLeavesBesideAnother) {
    submit(acquire_number(0));
    world.run_ready();
    for (unsigned number = 1; number < 32; ++number) {
        submit(acquire_number(number));
    }
    world.run_ready();
    EXPECT_EQ(target.batches.size(), 1U) << "31 wait for the answer";
    submit(acquire_number(32));
    world.run_ready();
    ASSERT_EQ(target.batches.size(), 2U);
    EXPECT_EQ(target.batches[1].entries.size(), 32U);
    const auto alone = submit(acquire_number(33));
    world.run_ready();
    EXPECT_EQ(target.batches.size(), 2U);
    target.batches[0].answer_all(answer_of(verdict::granted));
    world.run_ready();
    EXPECT_EQ(target.batches.size(), 2U) << "the other batch is still under way";
    target.batches[1].answer_all(answer_of(verdict::granted));
    world.run_ready();
    ASSERT_EQ(target.batches.size(), 3U);
    target.batches[2].answer_all(answer_of(verdict::held));
    EXPECT_EQ(alone->last().what, verdict::held);
    EXPECT_TRUE(batches.idle());
}

TEST_F(Batcher, NoMoreThanFourBatchesOfALaneAreUnderWay) {
    for (unsigned batch = 0; batch < 6; ++batch) {
        for (unsigned number = 0; number < 40; ++number) {
            submit(acquire_number(100 * batch + number));
        }
        world.run_ready();
    }
    ASSERT_EQ(target.batches.size(), 4U);
    EXPECT_EQ(batches.in_flight(), 160U);
    target.batches[2].answer_all(answer_of(verdict::granted));
    world.run_ready();
    ASSERT_EQ(target.batches.size(), 5U);
    EXPECT_EQ(target.batches[4].entries.size(), 80U) << "all that waited meanwhile";
}

TEST_F(Batcher, ReleasesGoBeforeAcquires) {
    submit(acquire_number(1));
    world.run_ready();
    submit(acquire_number(2));
    submit(release_of("a", holder_of(8)));
    submit(revoke_of("b", 3));
    submit(release_of("c", holder_of(9)));
    target.batches[0].answer_all(answer_of(verdict::granted));
    world.run_ready();
    ASSERT_EQ(target.batches.size(), 2U);
    const auto& second = target.batches[1];
    EXPECT_EQ(second.as<release>(0).key, "a");
    EXPECT_EQ(second.as<release>(1).key, "c");
    EXPECT_EQ(second.as<acquire>(2).key, "k2");
    EXPECT_EQ(second.as<revoke>(3).key, "b");
}

TEST_F(Batcher, RenewalsDoNotWaitForAHungAcquireBatch) {
    submit(acquire_number(1));
    world.run_ready();
    const auto told = submit(renew_of("r", holder_of(5)));
    world.run_ready();
    ASSERT_EQ(target.batches.size(), 2U);
    EXPECT_EQ(target.batches[1].which, lane::renewals);
    EXPECT_EQ(target.batches[1].count<renew>(), 1U);
    target.batches[1].answer_all(answer_of(verdict::renewed));
    EXPECT_EQ(told->last().what, verdict::renewed);
}

TEST_F(Batcher, ABatchHoldsAtMost256Entries) {
    submit(acquire_number(0));
    world.run_ready();
    for (unsigned number = 1; number <= 600; ++number) {
        submit(acquire_number(number));
    }
    std::vector<std::size_t> sizes;
    for (std::size_t at = 0; at < target.batches.size() && at < 10; ++at) {
        sizes.push_back(target.batches[at].entries.size());
        target.batches[at].answer_all(answer_of(verdict::granted));
        world.run_ready();
    }
    EXPECT_EQ(sizes, (std::vector<std::size_t>{1, 256, 256, 88}));
}

TEST_F(Batcher, ABatchBringsNoMoreThanAServerMakesSomethingOfInTime) {
    const auto finish_number = [](unsigned number, std::size_t bytes) {
        return finish_of("k" + std::to_string(number),
                         holder_of(number),
                         result_to_keep{.value = std::string(bytes, 'v')});
    };
    submit(acquire_number(0));
    world.run_ready();
    for (unsigned number = 1; number <= 5; ++number) {
        submit(finish_number(number, max_batch_payload / 2));
    }
    submit(finish_number(6, 2 * max_batch_payload));
    submit(acquire_number(7));
    std::vector<std::size_t> sizes;
    for (std::size_t at = 0; at < target.batches.size() && at < 10; ++at) {
        sizes.push_back(target.batches[at].entries.size());
        target.batches[at].answer_all(answer_of(verdict::finished));
        world.run_ready();
    }
    EXPECT_EQ(sizes, (std::vector<std::size_t>{1, 2, 2, 1, 1, 1}))
        << "what is too large goes alone";
}

TEST_F(Batcher, TellsDoubtWhenPatienceIsOverAndTheTrueAnswerLater) {
    const auto told = submit(acquire_number(1));
    world.run_ready();
    EXPECT_EQ(target.batches[0].entries[0].deadline, world.now() + 1s);
    world.advance(1s);
    EXPECT_TRUE(told->none()) << "the store may be about to refuse it for its deadline";
    world.advance(10ms);
    ASSERT_EQ(told->replies.size(), 1U);
    EXPECT_EQ(told->last().took, effect::unknown);
    EXPECT_EQ(told->last().error, condition::outcome_unknown);
    EXPECT_FALSE(told->replies[0].final);
    EXPECT_EQ(batches.in_flight(), 1U);

    target.batches[0].answer_all(answer_of(verdict::granted));
    ASSERT_EQ(told->replies.size(), 2U);
    EXPECT_EQ(told->last().what, verdict::granted);
    EXPECT_TRUE(told->replies[1].final);
    EXPECT_TRUE(batches.idle());
}

TEST_F(Batcher, NothingWaitsBehindALostAnswer) {
    submit(acquire_number(1));
    world.run_ready();
    const auto next = submit(acquire_number(2));
    world.advance(900ms);
    EXPECT_EQ(target.batches.size(), 1U);
    world.advance(200ms);
    ASSERT_EQ(target.batches.size(), 2U);
    target.batches[1].answer_all(answer_of(verdict::granted));
    EXPECT_EQ(next->last().what, verdict::granted);

    // The answer that comes after all frees nothing that it does not hold up.
    submit(acquire_number(3));
    world.run_ready();
    submit(acquire_number(4));
    target.batches[0].answer_all(answer_of(verdict::held));
    world.run_ready();
    EXPECT_EQ(target.batches.size(), 3U) << "batch 3 is still under way";
}

TEST_F(Batcher, AHungOperationOfALongLeaseHoldsUpOthersForSeconds) {
    // A sixth of an hour's ttl is ten minutes: nobody shall stand behind that.
    const auto hung = std::make_shared<heard>();
    submit(release_of("long", holder_of(1)), hung, 10min, 1h);
    world.run_ready();
    const auto next = submit(acquire_number(2));
    world.advance(6s);
    ASSERT_EQ(target.batches.size(), 2U);
    EXPECT_EQ(hung->last().took, effect::unknown);
}

TEST_F(Batcher, TheShortestPatienceFreesTheLaneAndTheOthersKeepTheirs) {
    const auto shorter = std::make_shared<heard>();
    const auto longer = std::make_shared<heard>();
    submit(acquire_number(1), shorter, 100ms);
    submit(acquire_number(2), longer, 1s);
    world.run_ready();
    submit(acquire_number(3));
    world.advance(150ms);
    EXPECT_EQ(shorter->replies.size(), 1U);
    EXPECT_TRUE(longer->none());
    EXPECT_EQ(target.batches.size(), 2U);
    world.advance(1s);
    EXPECT_EQ(shorter->replies.size(), 1U) << "doubt is told once";
    EXPECT_EQ(longer->replies.size(), 1U);
}

TEST_F(Batcher, AnEntryThatWasNotSentCanBeTakenBack) {
    submit(acquire_number(1));
    world.run_ready();
    const auto told = std::make_shared<heard>();
    const auto ticket = submit(acquire_number(2), told);
    EXPECT_TRUE(batches.cancel(ticket));
    EXPECT_TRUE(batches.cancel(ticket)) << "twice is as good as once";
    target.batches[0].answer_all(answer_of(verdict::granted));
    world.run_ready();
    EXPECT_EQ(target.batches.size(), 1U);
    EXPECT_TRUE(told->none());
    EXPECT_TRUE(batches.idle());
}

TEST_F(Batcher, AnEntryThatWasSentCannotBeTakenBackAndDisturbsNoOther) {
    const auto told = std::make_shared<heard>();
    const auto ticket = submit(acquire_number(1), told);
    const auto other = submit(acquire_number(2));
    world.run_ready();
    EXPECT_FALSE(batches.cancel(ticket));
    target.batches[0].answer_all(answer_of(verdict::granted));
    EXPECT_EQ(told->replies.size(), 1U);
    EXPECT_EQ(other->replies.size(), 1U);
    EXPECT_FALSE(batches.cancel(ticket)) << "answered";
    EXPECT_FALSE(batches.cancel(batcher::ticket{}));
}

TEST_F(Batcher, AnEntryIsNotSentAfterItsTime) {
    submit(acquire_number(1));
    world.run_ready();
    const auto told = std::make_shared<heard>();
    submit(acquire_number(2), told, 1s, 500ms);
    const auto in_time = submit(acquire_number(3));
    world.advance(500ms);
    target.batches[0].answer_all(answer_of(verdict::granted));
    world.run_ready();
    ASSERT_EQ(told->replies.size(), 1U);
    EXPECT_EQ(told->last().took, effect::no);
    EXPECT_EQ(told->last().error, make_error_code(errc::timed_out));
    ASSERT_EQ(target.batches.size(), 2U);
    EXPECT_EQ(target.batches[1].entries.size(), 1U);
    EXPECT_EQ(target.batches[1].as<acquire>().key, "k3");
}

TEST_F(Batcher, TheStoreHearsTheEarlierOfPatienceAndTime) {
    submit(acquire_number(1), std::make_shared<heard>(), 1s, 300ms);
    submit(acquire_number(2), std::make_shared<heard>(), 1s, 2s);
    world.run_ready();
    EXPECT_EQ(target.batches[0].entries[0].deadline, world.now() + 300ms);
    EXPECT_EQ(target.batches[0].entries[1].deadline, world.now() + 1s);
}

TEST_F(Batcher, MissingAnswersAreDoubt) {
    const auto first = submit(acquire_number(1));
    const auto second = submit(acquire_number(2));
    world.run_ready();
    target.batches[0].done(answers(1, answer_of(verdict::granted)));
    EXPECT_EQ(first->last().what, verdict::granted);
    EXPECT_EQ(second->last().took, effect::unknown);
}

TEST_F(Batcher, CloseRefusesWhatWasNotSentAndWhatComesLater) {
    const auto sent = submit(acquire_number(1));
    world.run_ready();
    const auto queued = submit(acquire_number(2));
    batches.close();
    const auto later = submit(release_of("k", holder_of(1)));
    world.run_ready();
    EXPECT_EQ(queued->last().error, make_error_code(errc::closed));
    EXPECT_EQ(queued->last().took, effect::no);
    EXPECT_EQ(later->last().error, make_error_code(errc::closed));
    target.batches[0].answer_all(answer_of(verdict::granted));
    EXPECT_EQ(sent->last().what, verdict::granted) << "what is under way still gets its answer";
    world.run_ready();
    EXPECT_EQ(target.batches.size(), 1U);
}

TEST_F(Batcher, AnAnswerAfterItsEndIsIgnored) {
    auto going = std::make_unique<batcher>(world.view(), target);
    bool told = false;
    going->submit(acquire_number(1), 1s, world.now() + 1min, [&](const reply&) { told = true; });
    world.run_ready();
    going.reset();
    target.batches[0].answer_all(answer_of(verdict::granted));
    world.advance(1min);
    EXPECT_FALSE(told);
}

}  // namespace dibs::core
