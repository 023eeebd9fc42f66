// SPDX-License-Identifier: Apache-2.0
// Who waits for what another process leaves, on a store that takes word: it is told, and watches
// nothing; and what it does where no word was taken, or a notice is lost.

#include "mutex_process.hpp"

#include <variant>

namespace dibs::recipes {

namespace {

mutex_terms for_a_result() {
    auto terms = terms_of(1min);
    terms.awaits_result = true;
    return terms;
}

class MutexNotices : public Mutex {
  protected:
    MutexNotices() {
        here.line.notifies = true;
        there.line.notifies = true;
    }
    [[nodiscard]] std::size_t left_word() const {
        std::size_t found = 0;
        for (const auto& batch : there.line.seen) {
            for (const auto& one : batch.entries) {
                const auto* asked = std::get_if<core::acquire>(&one.what);
                found += asked != nullptr && asked->notify ? 1 : 0;
            }
        }
        return found;
    }
    /// How long after the release the other process has the key.
    nanoseconds taken_over(const process::ended_ptr& waiting, const lease_ptr& held) {
        const auto released = world.now();
        here.release(held);
        world.run_until([&] { return waiting->outcome.has_value(); }, 1min);
        EXPECT_TRUE(waiting->lease());
        return waiting->when - released;
    }
};

}  // namespace

TEST_F(MutexNotices, WhoWaitsForAResultAsksTwiceAndWatchesNothing) {
    const auto held = here.take();
    const auto waiting = there.acquire(for_a_result());
    world.advance(100ms);
    EXPECT_EQ(there.line.count<core::acquire>(), 1U);
    EXPECT_LT(taken_over(waiting, held), 20ms);
    EXPECT_EQ(there.line.count<core::acquire>(), 2U);
    EXPECT_EQ(left_word(), 2U);
    EXPECT_EQ(there.line.listens, 1U);
    EXPECT_EQ(there.line.watches, 0U);
}

TEST_F(MutexNotices, WhoRacesWatches) {
    const auto held = here.take();
    const auto waiting = there.acquire(terms_of(1min));
    world.advance(100ms);
    EXPECT_LT(taken_over(waiting, held), 20ms);
    EXPECT_EQ(left_word(), 0U);
    EXPECT_EQ(there.line.listens, 0U);
    EXPECT_EQ(there.line.watches, 1U);
}

TEST_F(MutexNotices, WhereNoWordWasTakenItWatches) {
    there.line.has_room_for_word = false;
    const auto held = here.take();
    const auto waiting = there.acquire(for_a_result());
    world.advance(100ms);
    EXPECT_EQ(there.line.watches, 1U);
    EXPECT_LT(taken_over(waiting, held), 20ms);
}

TEST_F(MutexNotices, OneWhoDoesNotWaitLeavesNoWord) {
    const auto held = here.take();
    auto terms = for_a_result();
    terms.wait = 0s;
    const auto told = there.acquire(terms);
    world.run_until([&] { return told->outcome.has_value(); }, 1s);
    EXPECT_TRUE(told->busy());
    EXPECT_EQ(left_word(), 0U);
    EXPECT_EQ(there.line.listens, 0U);
}

TEST_F(MutexNotices, ALostNoticeCostsTimeAndNothingElse) {
    there.line.deaf = true;
    const auto held = here.take();
    const auto waiting = there.acquire(for_a_result());
    world.advance(100ms);
    EXPECT_LT(taken_over(waiting, held), 4s);
}

TEST_F(MutexNotices, AHolderThatIsGoneIsFollowedWhenItsTimeIsOver) {
    const auto held = here.take(terms_of(0s, 6s));
    ASSERT_TRUE(held);
    here.line.plan = [](std::size_t, const auto&) { return fault::lose_request; };
    const auto waiting = there.acquire(for_a_result());
    const auto began = world.now();
    world.run_until([&] { return waiting->outcome.has_value(); }, 1min);
    ASSERT_TRUE(waiting->lease());
    EXPECT_LT(waiting->when - began, 7s);
}

TEST_F(MutexNotices, ACallThatEndsListensNoLonger) {
    const auto held = here.take();
    auto terms = for_a_result();
    terms.wait = 200ms;
    const auto waiting = there.acquire(terms);
    world.run_until([&] { return waiting->outcome.has_value(); }, 1s);
    EXPECT_TRUE(waiting->busy());
    const auto asked = there.line.seen.size();
    here.release(held);
    world.advance(5s);
    EXPECT_EQ(there.line.seen.size(), asked) << "nobody waits here any more";
    EXPECT_EQ(there.keys.known_keys(), 0U);
}

}  // namespace dibs::recipes
