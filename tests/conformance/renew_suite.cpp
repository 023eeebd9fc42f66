// SPDX-License-Identifier: Apache-2.0
// renew and release: what the holder may do, and that nobody else may.

#include "suite.hpp"

namespace dibs::conformance {

TEST_P(Conformance, RenewStartsTheTtlAnew) {
    const auto holder = somebody();
    const auto granted = ask(a(), acquire_of("k", holder));
    pass(6s);
    const auto renewed = ask(a(), renew_of("k", holder), store::lane::renewals);
    EXPECT_EQ(renewed.what, verdict::renewed);
    EXPECT_EQ(renewed.took, effect::yes);
    EXPECT_EQ(renewed.fences, granted.fences) << "a renewal mints no fence";
    EXPECT_EQ(renewed.expires, renewed.now.lease + usual_ttl);
    pass(6s);
    EXPECT_EQ(ask(b(), acquire_of("k", somebody())).what, verdict::held);
    pass(4s);
    EXPECT_EQ(ask(b(), acquire_of("k", somebody())).what,
              caps().expires ? verdict::granted : verdict::held);
}

TEST_P(Conformance, AShorterRenewalEndsSooner) {
    DIBS_NEEDS_EXPIRY();
    const auto holder = take(a(), "k");
    EXPECT_EQ(ask(a(), renew_of("k", holder, 1s)).what, verdict::renewed);
    pass(1s);
    EXPECT_EQ(ask(b(), acquire_of("k", somebody())).what, verdict::granted);
}

TEST_P(Conformance, ALostHolderIsToldWhatBecameOfItsLease) {
    const auto expired = take(a(), "k");
    outlive();
    auto told = ask(a(), renew_of("k", expired));
    EXPECT_EQ(told.what, verdict::not_held);
    EXPECT_EQ(told.took, effect::yes);
    EXPECT_EQ(told.lost, outlived());
    EXPECT_EQ(ask(a(), release_of("k", expired)).lost, outlived());

    take(b(), "k");
    EXPECT_EQ(ask(a(), renew_of("k", expired)).lost, loss::taken);
    EXPECT_EQ(ask(a(), release_of("k", expired)).lost, loss::taken);

    EXPECT_EQ(ask(a(), renew_of("never granted", somebody())).lost, loss::gone);
    const auto released = take(a(), "released");
    ask(a(), release_of("released", released));
    told = ask(a(), release_of("released", released));
    EXPECT_EQ(told.what, verdict::not_held);
    EXPECT_EQ(told.lost, loss::gone);
}

TEST_P(Conformance, ExpiredGrantsAreNotRevivedByRenewal) {
    const auto holder = take(a(), "k");
    outlive();
    EXPECT_EQ(ask(a(), renew_of("k", holder)).what, verdict::not_held);
    EXPECT_TRUE(look(a(), "k").holders.empty());
}

TEST_P(Conformance, ForeignStepsNeverChangeARecord) {
    const auto old = take(a(), "k");
    outlive();
    const auto current = somebody();
    auto asked = acquire_of("k", current);
    asked.mark = result_of("under way", 1s, 1h);
    ASSERT_EQ(ask(b(), asked).what, verdict::granted);
    pass(1s);
    const auto before = picture(b(), "k");
    for (const auto& foreign : {old, somebody()}) {
        for (auto* through : {&a(), &b()}) {
            EXPECT_EQ(ask(*through, renew_of("k", foreign, 1h)).what, verdict::not_held);
            auto more = renew_of("k", foreign, 1h);
            more.fences = 5;
            EXPECT_EQ(ask(*through, more).what, verdict::not_held);
            auto adopt = renew_of("k", foreign, 1h);
            adopt.adopt = core::renew::change{
                somebody(),
                caps().hands_over ? core::attachment::detached : core::attachment::attached};
            EXPECT_EQ(ask(*through, adopt).what, verdict::not_held);
            EXPECT_EQ(ask(*through, release_of("k", foreign)).what, verdict::not_held);
            EXPECT_EQ(ask(*through, finish_of("k", foreign, result_of("stolen", 1h, 1h))).what,
                      verdict::not_held);
            EXPECT_EQ(
                ask(*through, finish_of("k", foreign, result_of("stolen", 1h, 1h), true)).what,
                verdict::not_held);
            EXPECT_EQ(picture(b(), "k"), before);
        }
    }
    EXPECT_EQ(ask(b(), renew_of("k", current)).what, verdict::renewed);
}

TEST_P(Conformance, AHolderOfOneKeyHoldsNoOther) {
    const auto holder = take(a(), "k");
    take(b(), "other");
    const auto before = picture(b(), "other");
    EXPECT_EQ(ask(a(), renew_of("other", holder)).what, verdict::not_held);
    EXPECT_EQ(ask(a(), release_of("other", holder)).what, verdict::not_held);
    EXPECT_EQ(picture(b(), "other"), before);
}

TEST_P(Conformance, AdoptionMovesTheLeaseToAnotherHolderAndProcess) {
    DIBS_NEEDS_HANDING_OVER();
    const auto giver = somebody();
    const auto granted = ask(a(), acquire_of("k", giver));
    pass(4s);
    const auto adopter = somebody();
    auto asked = renew_of("k", giver);
    asked.adopt = core::renew::change{adopter, core::attachment::attached};
    const auto adopted = ask(b(), asked);
    ASSERT_EQ(adopted.what, verdict::renewed);
    EXPECT_EQ(adopted.fences, granted.fences);
    EXPECT_EQ(adopted.expires, granted.expires + 4s);

    const auto holders = look(a(), "k").holders;
    ASSERT_EQ(holders.size(), 1U);
    EXPECT_EQ(holders.front().who.host, "host-b");

    const auto before = picture(a(), "k");
    EXPECT_EQ(ask(a(), renew_of("k", giver)).what, verdict::not_held);
    EXPECT_EQ(ask(a(), release_of("k", giver)).what, verdict::not_held);
    EXPECT_EQ(picture(a(), "k"), before);
    EXPECT_EQ(ask(b(), renew_of("k", adopter)).what, verdict::renewed);
    EXPECT_EQ(ask(b(), release_of("k", adopter)).what, verdict::released);
}

TEST_P(Conformance, DetachingChangesTheAttachmentAlone) {
    DIBS_NEEDS_HANDING_OVER();
    const auto holder = take(a(), "k");
    const auto fences = fences_of(a(), "k");
    auto asked = renew_of("k", holder);
    asked.adopt = core::renew::change{holder, core::attachment::detached};
    EXPECT_EQ(ask(a(), asked).what, verdict::renewed);
    const auto holders = look(b(), "k").holders;
    ASSERT_EQ(holders.size(), 1U);
    EXPECT_EQ(holders.front().attached, core::attachment::detached);
    EXPECT_EQ(holders.front().fences, fences);
    EXPECT_EQ(ask(a(), release_of("k", holder)).what, verdict::released);
}

TEST_P(Conformance, RenewTellsWhetherOthersWait) {
    const auto holder = take(a(), "k");
    EXPECT_FALSE(ask(a(), renew_of("k", holder)).waiters);
    if (!caps().wakes) {
        GTEST_SKIP() << caps().name << " keeps no waiters";
    }
    const auto probe = watch(b(), "k");
    EXPECT_TRUE(ask(a(), renew_of("k", holder)).waiters);
    b().unwatch(probe->id);
    settle({&b()});
    EXPECT_FALSE(ask(a(), renew_of("k", holder)).waiters);
}

TEST_P(Conformance, ReleaseFreesTheKeyAtOnce) {
    const auto holder = take(a(), "k");
    const auto released = ask(a(), release_of("k", holder));
    EXPECT_EQ(released.what, verdict::released);
    EXPECT_EQ(released.took, effect::yes);
    EXPECT_EQ(ask(b(), acquire_of("k", somebody())).what, verdict::granted);
}

TEST_P(Conformance, AnyProcessThatKnowsTheHolderIdMayRelease) {
    DIBS_NEEDS_HANDING_OVER();
    const auto holder = take(a(), "k");
    EXPECT_EQ(ask(b(), release_of("k", holder)).what, verdict::released);
    EXPECT_TRUE(look(a(), "k").holders.empty());
}

}  // namespace dibs::conformance
