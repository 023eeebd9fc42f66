// SPDX-License-Identifier: Apache-2.0
// The decision when to stop a child, on made-up times: ttl 30 s, grace 5 s, margin 250 ms.
#include "cli/supervisor/stopper.hpp"

#include <gtest/gtest.h>

namespace dibs::cli {
namespace {

using core::instant;
using core::milliseconds;
using std::chrono::seconds;

constexpr instant at(milliseconds since) {
    return instant{since};
}

stop_limits usual() {
    stop_limits limits;
    limits.grace = seconds{5};
    return limits;
}

TEST(Stopper, LeavesTheChildAloneWhileTheLeaseIsRenewed) {
    stopper stop(usual(), at(seconds{30}));
    for (int second = 0; second < 300; second += 10) {
        stop.deadline_is(at(seconds{second + 30}));
        EXPECT_EQ(stop.next(at(seconds{second})), stop_action::none);
    }
    EXPECT_EQ(stop.wake_at(), at(seconds{320} - milliseconds{250} - seconds{5}));
}

TEST(Stopper, TerminatesGraceAndMarginBeforeTheDeadlineAndKillsAtTheMargin) {
    stopper stop(usual(), at(seconds{30}));
    EXPECT_EQ(stop.wake_at(), at(milliseconds{24'750}));
    EXPECT_EQ(stop.next(at(milliseconds{24'749})), stop_action::none);
    EXPECT_EQ(stop.next(at(milliseconds{24'750})), stop_action::terminate);
    EXPECT_EQ(stop.next(at(milliseconds{24'750})), stop_action::none);
    EXPECT_EQ(stop.cause(), stop_cause::deadline);
    EXPECT_EQ(stop.wake_at(), at(milliseconds{29'750}));
    EXPECT_EQ(stop.next(at(milliseconds{29'749})), stop_action::none);
    EXPECT_EQ(stop.next(at(milliseconds{29'750})), stop_action::kill);
    EXPECT_EQ(stop.next(at(seconds{40})), stop_action::none);
    EXPECT_EQ(stop.wake_at(), never);
}

TEST(Stopper, IsNotTalkedOutOfItByALateRenewal) {
    stopper stop(usual(), at(seconds{30}));
    ASSERT_EQ(stop.next(at(milliseconds{24'750})), stop_action::terminate);
    stop.deadline_is(at(seconds{55}));
    EXPECT_EQ(stop.cause(), stop_cause::deadline);
    EXPECT_EQ(stop.next(at(milliseconds{29'750})), stop_action::kill);
}

TEST(Stopper, GivesNoGraceThatTheDeadlineDoesNotHave) {
    stopper stop(usual(), at(seconds{30}));
    // Woken two seconds late.
    ASSERT_EQ(stop.next(at(milliseconds{26'750})), stop_action::terminate);
    EXPECT_EQ(stop.kill_at(), at(milliseconds{29'750}));
    // Woken after everything: both at once.
    stopper late(usual(), at(seconds{30}));
    EXPECT_EQ(late.next(at(seconds{60})), stop_action::terminate);
    EXPECT_EQ(late.next(at(seconds{60})), stop_action::kill);
}

TEST(Stopper, StopsAtOnceWhenTheLeaseIsLost) {
    stopper stop(usual(), at(seconds{30}));
    stop.lease_lost();
    EXPECT_EQ(stop.next(at(seconds{1})), stop_action::terminate);
    EXPECT_EQ(stop.cause(), stop_cause::lost);
    EXPECT_EQ(stop.kill_at(), at(seconds{6}));
    EXPECT_EQ(stop.next(at(seconds{6})), stop_action::kill);
}

TEST(Stopper, MaxHoldAndMaxRuntimeStopInTheirOwnTime) {
    auto limits = usual();
    limits.max_hold = at(seconds{10});
    stopper hold(limits, at(seconds{30}));
    EXPECT_EQ(hold.wake_at(), at(seconds{10}));
    EXPECT_EQ(hold.next(at(seconds{10})), stop_action::terminate);
    EXPECT_EQ(hold.cause(), stop_cause::max_hold);

    limits = usual();
    limits.max_runtime = at(seconds{10});
    stopper runtime(limits, at(seconds{30}));
    EXPECT_EQ(runtime.next(at(seconds{10})), stop_action::terminate);
    EXPECT_EQ(runtime.cause(), stop_cause::max_runtime);
    // A loss during that stop is the graver news.
    runtime.lease_lost();
    EXPECT_EQ(runtime.cause(), stop_cause::lost);
    EXPECT_EQ(runtime.next(at(seconds{15})), stop_action::kill);
}

TEST(Stopper, ForceKillsWithoutGraceAndAlsoDuringIt) {
    stopper stop(usual(), at(seconds{30}));
    stop.force();
    EXPECT_EQ(stop.next(at(seconds{1})), stop_action::kill);
    EXPECT_EQ(stop.cause(), stop_cause::forced);
    EXPECT_EQ(stop.next(at(seconds{2})), stop_action::none);

    stopper stopping(usual(), at(seconds{30}));
    ASSERT_EQ(stopping.next(at(milliseconds{24'750})), stop_action::terminate);
    stopping.force();
    EXPECT_EQ(stopping.next(at(seconds{25})), stop_action::kill);
    EXPECT_EQ(stopping.cause(), stop_cause::deadline);
}

TEST(Stopper, AsGuardStopsWhenTheWrapperIsGoneButNeverLaterThanTheDeadlineAllows) {
    stopper stop(usual(), at(seconds{30}));
    stop.wrapper_gone();
    EXPECT_EQ(stop.next(at(seconds{3})), stop_action::terminate);
    EXPECT_EQ(stop.kill_at(), at(seconds{8}));

    stopper late(usual(), at(seconds{30}));
    late.wrapper_gone();
    EXPECT_EQ(late.next(at(seconds{28})), stop_action::terminate);
    EXPECT_EQ(late.kill_at(), at(milliseconds{29'750}));
}

TEST(Stopper, AsGuardDoesNotTerminateAgainWhatTheWrapperHasTerminated) {
    stopper stop(usual(), at(seconds{30}));
    stop.terminated_by_other(at(seconds{29}));
    EXPECT_EQ(stop.next(at(seconds{28})), stop_action::none);
    EXPECT_EQ(stop.wake_at(), at(seconds{29}));
    EXPECT_EQ(stop.next(at(seconds{29})), stop_action::kill);
}

TEST(Stopper, WithoutADeadlineThereIsNothingToWaitFor) {
    stopper stop(usual(), never);
    EXPECT_EQ(stop.wake_at(), never);
    EXPECT_EQ(stop.next(at(seconds{100'000})), stop_action::none);
}

}  // namespace
}  // namespace dibs::cli
