// SPDX-License-Identifier: Apache-2.0
// An acquire in doubt is released until it is certain that it holds nothing.

#include "core/undo.hpp"

#include "store/memory/memory_store.hpp"
#include "support/faulty_store.hpp"
#include "support/manual_target.hpp"
#include "support/verbs.hpp"
#include "support/virtual_environment.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>

namespace dibs::core {

namespace {

using namespace std::chrono_literals;
using namespace dibs::testing;

class Undo : public ::testing::Test {
  protected:
    doubtful_acquire doubt(bool answered, std::optional<store_instant> not_after = std::nullopt) {
        doubtful_acquire what;
        what.key = "k";
        what.holder = holder_of(1);
        what.ttl = 6s;
        what.last_sent = world.now();
        what.not_after = not_after;
        what.answered = answered;
        return what;
    }
    [[nodiscard]] static answer at_store_time(verdict what, store_instant when) {
        auto given = answer_of(what);
        given.now.lease = when;
        return given;
    }
    /// Answers the latest batch.
    void tell(const core::answer& given) {
        world.run_ready();
        ASSERT_FALSE(target.batches.empty());
        target.batches.back().answer_all(given);
        world.run_ready();
    }

    virtual_environment world;
    manual_target target{world.view()};
    batcher batches{world.view(), target};
    undo doubts{world.view(), batches};
};

}  // namespace

TEST_F(Undo, ReleasesByHolderId) {
    doubts.settle(doubt(true));
    EXPECT_EQ(doubts.open(), 1U);
    world.run_ready();
    const auto& asked = target.batches.back().as<release>();
    EXPECT_EQ(asked.key, "k");
    EXPECT_EQ(asked.holder, holder_of(1));
    tell(answer_of(verdict::released));
    EXPECT_EQ(doubts.open(), 0U);
    EXPECT_EQ(doubts.undone(), 1U);
}

TEST_F(Undo, NotHeldIsNotDefiniteWhileTheAcquireIsOnItsWay) {
    doubts.settle(doubt(false));
    for (int round = 0; round < 5; ++round) {
        tell(answer_of(verdict::not_held));
        EXPECT_EQ(doubts.open(), 1U);
        const auto asked = target.batches.size();
        ASSERT_TRUE(world.run_until([&] { return target.batches.size() > asked; }, 3s))
            << "asked again";
    }
    doubts.acquire_answered(holder_of(1));
    // The question under way was asked before; the next one counts.
    tell(answer_of(verdict::not_held));
    world.advance(3s);
    if (doubts.open() != 0) {
        tell(answer_of(verdict::not_held));
    }
    EXPECT_EQ(doubts.open(), 0U);
    EXPECT_EQ(doubts.undone(), 0U);
}

TEST_F(Undo, ReleasedIsNotDefiniteEitherWhileTriesAreOnTheirWay) {
    // Two tries of one acquire: the first was executed and is released; the second may come yet.
    doubts.settle(doubt(false));
    tell(answer_of(verdict::released));
    EXPECT_EQ(doubts.open(), 1U);
}

TEST_F(Undo, NotAfterMakesNotHeldDefinite) {
    const store_instant limit{1000s};
    doubts.settle(doubt(false, limit));
    tell(at_store_time(verdict::not_held, limit));
    EXPECT_EQ(doubts.open(), 1U) << "executed at the limit itself, the acquire would be granted";
    const auto asked = target.batches.size();
    ASSERT_TRUE(world.run_until([&] { return target.batches.size() > asked; }, 3s));
    tell(at_store_time(verdict::not_held, limit + 1us));
    EXPECT_EQ(doubts.open(), 0U);
}

TEST_F(Undo, TroubleIsNoAnswer) {
    doubts.settle(doubt(true));
    tell(refused(errc::store_unreachable, "no connection"));
    EXPECT_EQ(doubts.open(), 1U);
    auto asked = target.batches.size();
    ASSERT_TRUE(world.run_until([&] { return target.batches.size() > asked; }, 3s));
    tell(in_doubt("the answer was lost"));
    EXPECT_EQ(doubts.open(), 1U);
    asked = target.batches.size();
    ASSERT_TRUE(world.run_until([&] { return target.batches.size() > asked; }, 3s));
    tell(answer_of(verdict::not_held));
    EXPECT_EQ(doubts.open(), 0U);
}

TEST_F(Undo, GivesUpOnceWhateverWasGrantedHasExpired) {
    doubts.settle(doubt(false));
    std::size_t answered = 0;
    const auto give_up = world.now() + 12s;
    while (doubts.open() > 0 && world.now() < give_up + 1min) {
        world.advance(10ms);
        for (; answered < target.batches.size(); ++answered) {
            target.batches[answered].answer_all(refused(errc::store_unreachable, "no connection"));
        }
    }
    EXPECT_EQ(doubts.open(), 0U);
    EXPECT_GE(world.now(), give_up);
    EXPECT_LE(world.now(), give_up + 3s);
    EXPECT_GE(answered, 6U);
    EXPECT_LE(answered, 30U) << "with pauses that grow";
    EXPECT_EQ(world.time().armed(), 0U);
}

TEST_F(Undo, GivesUpAlsoWhenTheStoreNeverAnswers) {
    doubts.settle(doubt(false));
    world.advance(1min);
    EXPECT_EQ(doubts.open(), 0U);
    EXPECT_EQ(world.time().armed(), 0U);
}

TEST_F(Undo, OneCasePerHolder) {
    doubts.settle(doubt(false));
    doubts.settle(doubt(true));
    EXPECT_EQ(doubts.open(), 1U);
    world.run_ready();
    for (auto& batch : target.batches) {
        batch.answer_all(answer_of(verdict::not_held));
        world.run_ready();
    }
    EXPECT_EQ(doubts.open(), 0U);
}

TEST_F(Undo, StopsWhenTheBatcherIsClosed) {
    doubts.settle(doubt(false));
    world.run_ready();
    batches.close();
    target.batches.back().answer_all(answer_of(verdict::not_held));
    world.advance(1min);
    EXPECT_EQ(doubts.open(), 0U);
}

// The store behind a line on which the acquire is late: it comes after the first releases were
// answered.
class LateAcquire : public ::testing::Test {
  protected:
    LateAcquire() {
        line.delay = 3s;
        line.blind_to_deadlines = true;
        line.plan = [](std::size_t number, const faulty_store::seen_batch&) {
            return number == 1 ? fault::delay_request : fault::none;
        };
    }
    void acquire_late(std::optional<store_instant> not_after) {
        auto asked = acquire_of("k", holder_of(1), 60s);
        asked.not_after = not_after;
        batches.submit(asked, 100ms, world.now() + 10s, [this](const reply& heard) {
            last_heard = heard.given.what;
        });
        world.advance(110ms);  // the patience is over; the request is still on its way
        doubts.settle({.key = "k",
                       .holder = holder_of(1),
                       .ttl = 60s,
                       .last_sent = world.now(),
                       .not_after = not_after,
                       .answered = false});
    }
    bool is_free() {
        bool free = false;
        batches.submit(
            acquire_of("k", holder_of(2)), 1s, world.now() + 10s, [&](const reply& heard) {
                free = heard.given.what == verdict::granted;
            });
        world.advance(1s);
        return free;
    }

    virtual_environment world;
    faulty_store line{
        world.view(),
        store::make_memory_store(world.view(),
                                 {.name = {}, .who = {}, .clock = world.store_clock().reader()})};
    batcher batches{world.view(), line};
    undo doubts{world.view(), batches};
    verdict last_heard = verdict::failed;
};

TEST_F(LateAcquire, IsFoundAndReleased) {
    acquire_late(std::nullopt);
    world.advance(2s);
    EXPECT_EQ(doubts.open(), 1U) << "not held so far says nothing";
    world.advance(5s);
    EXPECT_EQ(last_heard, verdict::granted);
    EXPECT_EQ(doubts.undone(), 1U);
    EXPECT_TRUE(is_free());
}

TEST_F(LateAcquire, IsRefusedAfterItsTimeAndThenSettled) {
    acquire_late(world.store_clock().now().lease + 1s);
    world.advance(2500ms);
    EXPECT_EQ(doubts.open(), 0U) << "definite without the acquire's own answer";
    world.advance(5s);
    EXPECT_EQ(last_heard, verdict::too_late);
    EXPECT_EQ(doubts.undone(), 0U);
    EXPECT_TRUE(is_free());
}

}  // namespace dibs::core
