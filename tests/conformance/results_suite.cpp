// SPDX-License-Identifier: Apache-2.0
// Results and marks: how they come into a record, how long they are fresh and kept, who may still
// leave one.

#include "suite.hpp"

namespace dibs::conformance {

TEST_P(Conformance, FinishLeavesAResultThatOthersReadAsDone) {
    const auto holder = somebody();
    const auto fence = ask(a(), acquire_of("k", holder)).fences.last;
    const auto finished = ask(a(), finish_of("k", holder, result_of("outcome", 10s, 60s)));
    EXPECT_EQ(finished.what, verdict::finished);
    EXPECT_EQ(finished.took, effect::yes);
    pass(4s);
    const auto done = ask(b(), acquire_of("k", somebody()));
    ASSERT_EQ(done.what, verdict::done);
    ASSERT_TRUE(done.result);
    EXPECT_EQ(done.result->value, "outcome");
    EXPECT_EQ(done.result->fence, fence);
    EXPECT_FALSE(done.result->is_mark);
    EXPECT_TRUE(done.result->fresh);
    EXPECT_EQ(done.result->age, 4s);
    EXPECT_EQ(done.result->fresh_left, 6s);
    EXPECT_EQ(done.result->keep_left, 56s);
    EXPECT_TRUE(look(b(), "k").holders.empty()) << "done is not a grant";
}

TEST_P(Conformance, AStaleResultIsKeptForReadingAndThenForgotten) {
    const auto holder = take(a(), "k");
    ask(a(), finish_of("k", holder, result_of("outcome", 10s, 60s)));
    pass(10s);
    const auto second = somebody();
    const auto granted = ask(b(), acquire_of("k", second));
    ASSERT_EQ(granted.what, verdict::granted);
    ASSERT_TRUE(granted.result);
    EXPECT_EQ(granted.result->value, "outcome");
    EXPECT_FALSE(granted.result->fresh);
    EXPECT_EQ(granted.result->fresh_left, 0s);
    EXPECT_EQ(granted.result->keep_left, 50s);
    const auto released = ask(b(), release_of("k", second));
    EXPECT_EQ(released.what, verdict::released);
    ASSERT_TRUE(released.result) << "a release without a result leaves the old one";
    pass(50s);
    EXPECT_FALSE(ask(b(), acquire_of("k", somebody())).result);
    EXPECT_FALSE(look(b(), "k").result);
}

TEST_P(Conformance, AResultIsKeptAtLeastAsLongAsItIsFresh) {
    const auto holder = take(a(), "k");
    ask(a(), finish_of("k", holder, result_of("outcome", 60s, 10s)));
    pass(59s);
    EXPECT_EQ(ask(b(), acquire_of("k", somebody())).what, verdict::done);
    pass(1s);
    EXPECT_EQ(ask(b(), acquire_of("k", somebody())).what, verdict::granted);
}

TEST_P(Conformance, AResultThatIsNeverFreshStopsNobody) {
    const auto holder = take(a(), "k");
    ask(a(), finish_of("k", holder, result_of("failed, attempt 1", 0s, 60s)));
    const auto granted = ask(b(), acquire_of("k", somebody()));
    EXPECT_EQ(granted.what, verdict::granted);
    ASSERT_TRUE(granted.result);
    EXPECT_EQ(granted.result->value, "failed, attempt 1");
}

TEST_P(Conformance, AResultThatWasSeenIsNotFresh) {
    const auto holder = somebody();
    const auto fence = ask(a(), acquire_of("k", holder)).fences.last;
    ask(a(), finish_of("k", holder, result_of("refused with 401", 1h, 1h)));
    auto asked = acquire_of("k", somebody());
    asked.seen = fence - 1;
    EXPECT_EQ(ask(b(), asked).what, verdict::done);
    asked.seen = fence;
    const auto granted = ask(b(), asked);
    EXPECT_EQ(granted.what, verdict::granted);
    ASSERT_TRUE(granted.result);
    EXPECT_FALSE(granted.result->fresh);
}

TEST_P(Conformance, ResultsFollowTheCalendar) {
    const auto holder = take(a(), "k");
    ask(a(), finish_of("k", holder, result_of("outcome", 1h, 2h)));
    world().step_calendar(1h);
    EXPECT_EQ(ask(b(), acquire_of("k", somebody())).what, verdict::granted);
}

TEST_P(Conformance, ValuesAreBytes) {
    std::string every_byte;
    for (int byte = 0; byte < 256; ++byte) {
        every_byte += static_cast<char>(byte);
    }
    const std::vector<std::string> values{
        "", std::string(1, '\0'), every_byte, std::string(65536, 'v')};
    for (const auto& value : values) {
        const auto holder = take(a(), "k");
        ask(a(), finish_of("k", holder, result_of(value, 0s, 1h)));
        const auto kept = look(b(), "k").result;
        ASSERT_TRUE(kept);
        EXPECT_EQ(kept->value, value);
    }
}

TEST_P(Conformance, AMarkIsWrittenWithTheGrantAndOutlivesIt) {
    auto asked = acquire_of("k", somebody());
    asked.mark = result_of("attempt 1", 0s, 1h);
    const auto granted = ask(a(), asked);
    ASSERT_EQ(granted.what, verdict::granted);
    EXPECT_FALSE(granted.result) << "told as it was found";
    outlive();
    auto next = acquire_of("k", somebody());
    next.mark = result_of("attempt 2", 0s, 1h);
    const auto second = ask(b(), next);
    ASSERT_EQ(second.what, verdict::granted);
    ASSERT_TRUE(second.result);
    EXPECT_EQ(second.result->value, "attempt 1");
    EXPECT_TRUE(second.result->is_mark);
    EXPECT_EQ(second.result->fence, granted.fences.last);
    const auto now_there = look(a(), "k").result;
    ASSERT_TRUE(now_there);
    EXPECT_EQ(now_there->value, "attempt 2");
    EXPECT_EQ(now_there->fence, second.fences.last);
}

TEST_P(Conformance, AMarkIsNotWrittenByARefusal) {
    take(a(), "k");
    auto asked = acquire_of("k", somebody());
    asked.mark = result_of("attempt 2", 0s, 1h);
    ASSERT_EQ(ask(b(), asked).what, verdict::held);
    EXPECT_FALSE(look(a(), "k").result);
}

TEST_P(Conformance, FinishReplacesTheMark) {
    auto asked = acquire_of("k", somebody());
    asked.mark = result_of("attempt 1", forever, forever);
    ask(a(), asked);
    ask(a(), finish_of("k", asked.holder, result_of("outcome", 10s, 60s)));
    const auto kept = look(b(), "k").result;
    ASSERT_TRUE(kept);
    EXPECT_EQ(kept->value, "outcome");
    EXPECT_FALSE(kept->is_mark);
    EXPECT_EQ(kept->keep_left, 60s);
}

TEST_P(Conformance, ReleaseLeavesTheMark) {
    auto asked = acquire_of("k", somebody());
    asked.mark = result_of("attempt 1", 0s, 1h);
    ask(a(), asked);
    EXPECT_EQ(ask(a(), release_of("k", asked.holder)).what, verdict::released);
    const auto kept = look(b(), "k").result;
    ASSERT_TRUE(kept);
    EXPECT_EQ(kept->value, "attempt 1");
    EXPECT_TRUE(kept->is_mark);
}

TEST_P(Conformance, AMarkThatStaysFreshIsAtMostOnce) {
    auto asked = acquire_of("k", somebody());
    asked.mark = result_of("started", forever, forever);
    ask(a(), asked);
    outlive();
    for (int day = 0; day < 3; ++day) {
        pass(24h);
        const auto done = ask(b(), acquire_of("k", somebody()));
        EXPECT_EQ(done.what, verdict::done);
        ASSERT_TRUE(done.result);
        EXPECT_TRUE(done.result->is_mark);
        EXPECT_EQ(done.result->fresh_left, forever);
        EXPECT_EQ(done.result->keep_left, forever);
    }
}

TEST_P(Conformance, RenewAndReleaseCarryTheResultToo) {
    auto asked = acquire_of("k", somebody());
    asked.mark = result_of("attempt 1", 0s, 1h);
    ask(a(), asked);
    const auto renewed = ask(a(), renew_of("k", asked.holder));
    ASSERT_TRUE(renewed.result);
    EXPECT_EQ(renewed.result->value, "attempt 1");
    const auto refused = ask(b(), renew_of("k", somebody()));
    EXPECT_EQ(refused.what, verdict::not_held);
    ASSERT_TRUE(refused.result);
    EXPECT_EQ(refused.result->value, "attempt 1");
}

TEST_P(Conformance, ALateFinishCountsWhileNoLaterGrantWasGiven) {
    const auto holder = somebody();
    const auto fence = ask(a(), acquire_of("k", holder)).fences.last;
    outlive();
    pass(30min);
    const auto finished = ask(a(), finish_of("k", holder, result_of("rotated", 1h, 1h), true));
    EXPECT_EQ(finished.what, verdict::finished);
    const auto done = ask(b(), acquire_of("k", somebody()));
    EXPECT_EQ(done.what, verdict::done);
    ASSERT_TRUE(done.result);
    EXPECT_EQ(done.result->value, "rotated");
    EXPECT_EQ(done.result->fence, fence);
}

TEST_P(Conformance, ALateFinishIsRefusedOnceALaterGrantWasGiven) {
    const auto late = take(a(), "k");
    outlive();
    const auto later = take(b(), "k");
    EXPECT_EQ(ask(a(), finish_of("k", late, result_of("stale", 1h, 1h), true)).what,
              verdict::not_held);
    ask(b(), release_of("k", later));
    EXPECT_EQ(ask(a(), finish_of("k", late, result_of("stale", 1h, 1h), true)).what,
              verdict::not_held)
        << "also when that one is over";
    EXPECT_FALSE(look(a(), "k").result);
}

TEST_P(Conformance, AfterExpiryOnlyALateFinishCounts) {
    const auto holder = take(a(), "k");
    outlive();
    const auto refused = ask(a(), finish_of("k", holder, result_of("outcome", 1h, 1h)));
    EXPECT_EQ(refused.what, verdict::not_held);
    EXPECT_EQ(refused.lost, outlived());
    EXPECT_FALSE(look(a(), "k").result);
}

TEST_P(Conformance, WhatWasGivenBackIsNotFinishedLate) {
    const auto holder = take(a(), "k");
    ASSERT_EQ(ask(a(), release_of("k", holder)).what, verdict::released);
    const auto finish = finish_of("k", holder, result_of("late", 1h, 1h), true);
    EXPECT_EQ(ask(a(), finish).what, verdict::not_held) << "before it would have expired";
    pass(11s);
    const auto refused = ask(a(), finish);
    EXPECT_EQ(refused.what, verdict::not_held) << "and after that";
    EXPECT_EQ(refused.lost, loss::gone);
    // Nor once an operator has changed something else of the record.
    const auto next = take(a(), "k");
    ASSERT_EQ(ask(a(), release_of("k", next)).what, verdict::released);
    ASSERT_EQ(ask(b(), block_of("k", 1h, "x")).what, verdict::block_set);
    ASSERT_EQ(ask(b(), block_of("k", 0s, "")).what, verdict::block_set);
    pass(11s);
    EXPECT_EQ(ask(a(), finish_of("k", next, result_of("late", 1h, 1h), true)).what,
              verdict::not_held);
}

TEST_P(Conformance, AStrangersLateFinishIsRefused) {
    take(a(), "k");
    outlive();
    EXPECT_EQ(ask(b(), finish_of("k", somebody(), result_of("forged", 1h, 1h), true)).what,
              verdict::not_held);
    EXPECT_FALSE(look(a(), "k").result);
}

TEST_P(Conformance, ALateFinishIsRefusedAfterARevocation) {
    const auto holder = take(a(), "k");
    ask(b(), revoke_of("k", fences_of(a(), "k").first));
    const auto refused = ask(a(), finish_of("k", holder, result_of("outcome", 1h, 1h), true));
    EXPECT_EQ(refused.what, verdict::not_held);
    EXPECT_EQ(refused.lost, loss::revoked);
    EXPECT_FALSE(look(a(), "k").result);
}

}  // namespace dibs::conformance
