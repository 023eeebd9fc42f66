// SPDX-License-Identifier: Apache-2.0
// What an operator does: revoke a grant, hold a key back.

#include "suite.hpp"

namespace dibs::conformance {

TEST_P(Conformance, RevokeEndsTheGrantWithThatFence) {
    const auto holder = somebody();
    const auto granted = ask(a(), acquire_of("k", holder));
    const auto revoked = ask(b(), revoke_of("k", granted.fences.first));
    EXPECT_EQ(revoked.what, verdict::revoked);
    EXPECT_EQ(revoked.took, effect::yes);
    const auto told = ask(a(), renew_of("k", holder));
    EXPECT_EQ(told.what, verdict::not_held);
    EXPECT_EQ(told.lost, loss::revoked);
    EXPECT_EQ(ask(a(), release_of("k", holder)).lost, loss::revoked);
    const auto next = ask(b(), acquire_of("k", somebody()));
    EXPECT_EQ(next.what, verdict::granted);
    EXPECT_GT(next.fences.first, granted.fences.last);
    EXPECT_EQ(ask(a(), renew_of("k", holder)).lost, loss::taken);
}

TEST_P(Conformance, RevokeFindsAnyFenceOfABlock) {
    auto asked = acquire_of("k", somebody());
    asked.fences = 10;
    const auto granted = ask(a(), asked);
    EXPECT_EQ(ask(b(), revoke_of("k", granted.fences.first - 1)).what, verdict::fence_moved);
    EXPECT_EQ(ask(b(), revoke_of("k", granted.fences.first + 4)).what, verdict::revoked);
}

TEST_P(Conformance, RevokeOfAFenceThatMovedChangesNothing) {
    const auto first = take(a(), "k");
    const auto old_fence = fences_of(a(), "k").first;
    ask(a(), release_of("k", first));
    take(a(), "k");
    const auto before = picture(a(), "k");
    const auto moved = ask(b(), revoke_of("k", old_fence));
    EXPECT_EQ(moved.what, verdict::fence_moved);
    ASSERT_EQ(moved.holders.size(), 1U);
    EXPECT_EQ(moved.holders.front().who.host, "host-a");
    EXPECT_GT(moved.holders.front().fences.first, old_fence);
    EXPECT_EQ(picture(a(), "k"), before);
}

TEST_P(Conformance, RevokeOfAnUnknownKeyTellsThatNobodyHoldsIt) {
    const auto moved = ask(a(), revoke_of("k", 42));
    EXPECT_EQ(moved.what, verdict::fence_moved);
    EXPECT_TRUE(moved.holders.empty());
}

TEST_P(Conformance, RevokeOfAnExpiredGrantFindsNothing) {
    take(a(), "k");
    const auto fence = fences_of(a(), "k").first;
    outlive();
    EXPECT_EQ(ask(b(), revoke_of("k", fence)).what, verdict::fence_moved);
}

TEST_P(Conformance, AHoldKeepsEverybodyOutUntilItIsOver) {
    const auto set = ask(a(), block_of("k", 1min, "deploy'; drop"));
    EXPECT_EQ(set.what, verdict::block_set);
    EXPECT_EQ(set.took, effect::yes);
    pass(20s);
    for (auto* through : {&a(), &b()}) {
        const auto blocked = ask(*through, acquire_of("k", somebody()));
        EXPECT_EQ(blocked.what, verdict::blocked);
        EXPECT_EQ(blocked.reason, "deploy'; drop");
        EXPECT_EQ(blocked.retry_after, 40s);
    }
    const auto shown = look(b(), "k");
    EXPECT_EQ(shown.blocked_for, 40s);
    EXPECT_EQ(shown.blocked_reason, "deploy'; drop");
    pass(40s);
    EXPECT_EQ(look(b(), "k").blocked_for, 0s);
    EXPECT_EQ(ask(b(), acquire_of("k", somebody())).what, verdict::granted);
}

TEST_P(Conformance, AHoldLeavesLiveGrants) {
    const auto holder = take(a(), "k");
    ask(b(), block_of("k", 1h, "maintenance"));
    EXPECT_EQ(ask(a(), renew_of("k", holder)).what, verdict::renewed);
    EXPECT_EQ(ask(a(), finish_of("k", holder, result_of("outcome", 0s, 1h))).what,
              verdict::finished);
    EXPECT_EQ(ask(a(), acquire_of("k", somebody())).what, verdict::blocked);
}

TEST_P(Conformance, AHoldIsReplacedAndLifted) {
    ask(a(), block_of("k", 1h, "first"));
    ask(b(), block_of("k", 1min, "second"));
    auto blocked = ask(a(), acquire_of("k", somebody()));
    EXPECT_EQ(blocked.reason, "second");
    EXPECT_EQ(blocked.retry_after, 1min);
    EXPECT_EQ(ask(a(), block_of("k", 0s, "")).what, verdict::block_set);
    EXPECT_EQ(ask(b(), acquire_of("k", somebody())).what, verdict::granted);
}

TEST_P(Conformance, AHoldMayLastForEver) {
    ask(a(), block_of("k", forever, "retired"));
    pass(24h * 3650);
    const auto blocked = ask(b(), acquire_of("k", somebody()));
    EXPECT_EQ(blocked.what, verdict::blocked);
    EXPECT_EQ(blocked.retry_after, forever);
}

TEST_P(Conformance, AHoldOfOneKeyIsNoHoldOfAnother) {
    ask(a(), block_of("k", 1h, "maintenance"));
    EXPECT_EQ(ask(a(), acquire_of("k2", somebody())).what, verdict::granted);
}

}  // namespace dibs::conformance
