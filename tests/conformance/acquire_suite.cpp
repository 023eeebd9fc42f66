// SPDX-License-Identifier: Apache-2.0
// acquire: each step of its order, and that the order is that one.

#include "suite.hpp"

namespace dibs::conformance {

TEST_P(Conformance, GrantsAFreeKeyWithAFenceAndAnExpiry) {
    const auto granted = ask(a(), acquire_of("k", somebody()));
    EXPECT_EQ(granted.what, verdict::granted);
    EXPECT_EQ(granted.took, effect::yes);
    EXPECT_FALSE(granted.error);
    EXPECT_GT(granted.fences.first, 0U);
    EXPECT_EQ(granted.fences.first, granted.fences.last) << "one fence was asked for";
    EXPECT_EQ(granted.expires, granted.now.lease + usual_ttl);
    EXPECT_FALSE(granted.result);
}

TEST_P(Conformance, TellsEverybodyElseWhoHoldsTheKey) {
    const auto granted = ask(a(), acquire_of("k", somebody()));
    pass(4s);
    const auto held = ask(b(), acquire_of("k", somebody()));
    ASSERT_EQ(held.what, verdict::held);
    EXPECT_EQ(held.took, effect::yes);
    ASSERT_EQ(held.holders.size(), 1U);
    const auto& holder = held.holders.front();
    EXPECT_EQ(holder.who.host, "host-a");
    EXPECT_EQ(holder.who.pid, 4711);
    EXPECT_EQ(holder.who.user, "somebody");
    EXPECT_EQ(holder.who.command, "conformance --test");
    EXPECT_EQ(holder.fences, granted.fences);
    EXPECT_EQ(holder.weight, 1U);
    EXPECT_EQ(holder.attached, core::attachment::attached);
    EXPECT_EQ(holder.held_for, 4s);
    EXPECT_FALSE(holder.self);
    if (caps().expires) {
        EXPECT_EQ(holder.remaining, usual_ttl - 4s);
        EXPECT_EQ(held.retry_after, usual_ttl - 4s);
    } else {
        EXPECT_GT(holder.remaining, 1000 * 365 * 24h) << "for ever, as far as time goes";
        EXPECT_GT(held.retry_after, usual_ttl);
    }
}

TEST_P(Conformance, KnowsWhichHoldersAreItsOwn) {
    take(a(), "k");
    const auto held = ask(a(), acquire_of("k", somebody()));
    ASSERT_EQ(held.what, verdict::held) << "a second holder of the same process is another holder";
    ASSERT_EQ(held.holders.size(), 1U);
    EXPECT_TRUE(held.holders.front().self);
}

TEST_P(Conformance, ARefusedAcquireLeavesNoTrace) {
    take(a(), "k");
    const auto before = picture(a(), "k");
    ask(b(), acquire_of("k", somebody()));
    EXPECT_EQ(picture(a(), "k"), before);
}

TEST_P(Conformance, ARetryKeepsItsFencesAndStartsTheTtlAnew) {
    const auto mine = acquire_of("k", somebody());
    const auto first = ask(a(), mine);
    pass(6s);
    const auto again = ask(a(), mine);
    EXPECT_EQ(again.what, verdict::granted);
    EXPECT_EQ(again.fences, first.fences);
    EXPECT_EQ(again.expires, first.expires + 6s);
    pass(6s);
    EXPECT_EQ(ask(b(), acquire_of("k", somebody())).what, verdict::held);
    pass(4s);
    EXPECT_EQ(ask(b(), acquire_of("k", somebody())).what,
              caps().expires ? verdict::granted : verdict::held);
}

TEST_P(Conformance, ARetryThroughAnotherProcessFindsItsGrant) {
    DIBS_NEEDS_HANDING_OVER();
    const auto mine = acquire_of("k", somebody());
    const auto first = ask(a(), mine);
    const auto again = ask(b(), mine);
    EXPECT_EQ(again.what, verdict::granted);
    EXPECT_EQ(again.fences, first.fences);
}

TEST_P(Conformance, AGrantIsLiveUntilItsExpiryAndNotAtIt) {
    DIBS_NEEDS_EXPIRY();
    take(a(), "k");
    pass(usual_ttl - 1us);
    EXPECT_EQ(ask(b(), acquire_of("k", somebody())).what, verdict::held);
    pass(1us);
    EXPECT_EQ(ask(b(), acquire_of("k", somebody())).what, verdict::granted);
}

TEST_P(Conformance, AGrantWithoutExpiryIsLiveAsLongAsItsSession) {
    if (caps().expires) {
        GTEST_SKIP() << caps().name << " ends every grant by time";
    }
    const auto holder = somebody();
    const auto granted = ask(a(), acquire_of("k", holder));
    pass(1000 * usual_ttl);
    EXPECT_EQ(ask(b(), acquire_of("k", somebody())).what, verdict::held);
    const auto renewed = ask(a(), renew_of("k", holder));
    EXPECT_EQ(renewed.what, verdict::renewed);
    EXPECT_EQ(renewed.fences, granted.fences);
    outlive();
    EXPECT_EQ(ask(a(), renew_of("k", holder)).what, verdict::not_held);
    const auto next = ask(b(), acquire_of("k", somebody()));
    EXPECT_EQ(next.what, verdict::granted);
    EXPECT_GT(next.fences.first, granted.fences.last);
}

TEST_P(Conformance, WhatAStoreCannotHandOverIsRefusedAsUnsupported) {
    if (caps().hands_over) {
        GTEST_SKIP() << caps().name << " hands grants over";
    }
    auto detached = acquire_of("k", somebody());
    detached.attached = core::attachment::detached;
    const auto refusal = ask(a(), detached);
    EXPECT_EQ(refusal.took, effect::no);
    EXPECT_EQ(refusal.error, errc::unsupported);
    const auto holder = take(a(), "k");
    const auto before = picture(a(), "k");
    auto into = renew_of("k", holder);
    into.adopt = core::renew::change{somebody(), core::attachment::detached};
    EXPECT_EQ(ask(a(), into).error, errc::unsupported);
    into.adopt->attached = core::attachment::attached;
    for (const auto& foreign : {ask(b(), into),
                                ask(b(), renew_of("k", holder)),
                                ask(b(), release_of("k", holder)),
                                ask(b(), finish_of("k", holder, result_of("x", 1h, 1h), true))}) {
        EXPECT_EQ(foreign.took, effect::no);
        EXPECT_EQ(foreign.error, errc::unsupported) << foreign.detail;
    }
    EXPECT_EQ(picture(a(), "k"), before);
    EXPECT_EQ(ask(a(), into).what, verdict::renewed) << "within one process";
    EXPECT_EQ(ask(a(), release_of("k", holder)).what, verdict::not_held);
    EXPECT_EQ(ask(a(), release_of("k", into.adopt->holder)).what, verdict::released);
}

TEST_P(Conformance, AnExpiredHolderThatAsksAgainGetsANewGrant) {
    const auto mine = acquire_of("k", somebody());
    const auto first = ask(a(), mine);
    outlive();
    const auto second = ask(a(), mine);
    ASSERT_EQ(second.what, verdict::granted);
    EXPECT_GT(second.fences.first, first.fences.last);
}

TEST_P(Conformance, ASteppedCalendarMovesNoExpiry) {
    if (!caps().steady_expiry) {
        GTEST_SKIP() << caps().name << " has one clock for everything";
    }
    take(a(), "k");
    world().step_calendar(100 * usual_ttl);
    EXPECT_EQ(ask(b(), acquire_of("k", somebody())).what, verdict::held);
    world().step_calendar(-200 * usual_ttl);
    outlive();
    EXPECT_EQ(ask(b(), acquire_of("k", somebody())).what, verdict::granted);
}

TEST_P(Conformance, RefusesAnAcquireThatComesTooLate) {
    const auto now = ask(a(), acquire_of("elsewhere", somebody())).now.lease;
    auto asked = acquire_of("k", somebody());
    asked.not_after = now + 5s;
    pass(5s + 1us);
    const auto late = ask(a(), asked);
    EXPECT_EQ(late.what, verdict::too_late);
    EXPECT_EQ(late.took, effect::yes);
    EXPECT_TRUE(look(a(), "k").holders.empty());
    EXPECT_EQ(ask(b(), acquire_of("k", somebody())).what, verdict::granted);
}

TEST_P(Conformance, GrantsAnAcquireInItsLastMoment) {
    const auto now = ask(a(), acquire_of("elsewhere", somebody())).now.lease;
    auto asked = acquire_of("k", somebody());
    asked.not_after = now + 5s;
    pass(5s);
    EXPECT_EQ(ask(a(), asked).what, verdict::granted);
}

TEST_P(Conformance, TooLateComesBeforeTheRetryOfAHolder) {
    auto asked = acquire_of("k", somebody());
    const auto granted = ask(a(), asked);
    asked.not_after = granted.now.lease;
    pass(1s);
    const auto before = picture(a(), "k");
    EXPECT_EQ(ask(a(), asked).what, verdict::too_late);
    EXPECT_EQ(picture(a(), "k"), before) << "the grant stays, its ttl too";
}

TEST_P(Conformance, TheRetryOfAHolderComesBeforeCapacityAndHold) {
    auto asked = acquire_of("k", somebody());
    const auto granted = ask(a(), asked);
    ask(a(), block_of("k", 1min, "maintenance"));
    if (caps().shared) {
        asked.part = {1, 5};
    }
    const auto again = ask(a(), asked);
    EXPECT_EQ(again.what, verdict::granted);
    EXPECT_EQ(again.fences, granted.fences);
}

TEST_P(Conformance, CapacityComesBeforeTheHold) {
    if (!caps().shared) {
        GTEST_SKIP() << caps().name << " has no shared grants";
    }
    ask(a(), shared_acquire_of("k", somebody(), 1, 3));
    ask(a(), block_of("k", 1min, "maintenance"));
    const auto refusal = ask(b(), shared_acquire_of("k", somebody(), 1, 2));
    EXPECT_EQ(refusal.what, verdict::failed);
    EXPECT_EQ(refusal.took, effect::no);
    EXPECT_EQ(refusal.error, errc::capacity_differs);
}

TEST_P(Conformance, TheHoldComesBeforeTheHolder) {
    take(a(), "k");
    ask(a(), block_of("k", 1min, "maintenance"));
    EXPECT_EQ(ask(b(), acquire_of("k", somebody())).what, verdict::blocked);
}

TEST_P(Conformance, TheHolderComesBeforeAFreshResult) {
    auto asked = acquire_of("k", somebody());
    asked.mark = result_of("started", forever, forever);
    ASSERT_EQ(ask(a(), asked).what, verdict::granted);
    const auto held = ask(b(), acquire_of("k", somebody()));
    EXPECT_EQ(held.what, verdict::held);
    ASSERT_TRUE(held.result);
    EXPECT_TRUE(held.result->fresh);
}

TEST_P(Conformance, EveryAnswerToAnAcquireCarriesTheKeptResult) {
    const auto writer = somebody();
    const auto fence = ask(a(), acquire_of("k", writer)).fences.last;
    ask(a(), finish_of("k", writer, result_of("kept", 1s, 1h)));
    const auto carries_it = [&](const core::answer& given, verdict expected) {
        EXPECT_EQ(given.what, expected);
        ASSERT_TRUE(given.result);
        EXPECT_EQ(given.result->value, "kept");
        EXPECT_EQ(given.result->fence, fence);
        EXPECT_FALSE(given.result->is_mark);
    };
    carries_it(ask(b(), acquire_of("k", somebody())), verdict::done);
    pass(1s);
    ask(a(), block_of("k", 1s, "maintenance"));
    carries_it(ask(b(), acquire_of("k", somebody())), verdict::blocked);
    pass(1s);
    auto late = acquire_of("k", somebody());
    late.not_after = core::store_instant{};
    carries_it(ask(b(), late), verdict::too_late);
    const auto mine = acquire_of("k", somebody());
    carries_it(ask(a(), mine), verdict::granted);
    carries_it(ask(a(), mine), verdict::granted);
    carries_it(ask(b(), acquire_of("k", somebody())), verdict::held);
    if (caps().shared) {
        ask(a(), release_of("k", mine.holder));
        ask(a(), shared_acquire_of("k", somebody(), 1, 3));
        carries_it(ask(b(), shared_acquire_of("k", somebody(), 1, 3)), verdict::granted);
        carries_it(ask(b(), shared_acquire_of("k", somebody(), 1, 2)), verdict::failed);
    }
}

TEST_P(Conformance, KeysThatLookAlikeAreDistinct) {
    const std::vector<std::string> keys{"a",
                                        "A",
                                        "a ",
                                        " a",
                                        "a/b",
                                        "a/",
                                        "a'b",
                                        "a\"b",
                                        "a%b",
                                        "a%",
                                        "a_b",
                                        "axb",
                                        "a\\",
                                        "a*b",
                                        "a?b",
                                        "a[b]",
                                        "a;b",
                                        "a--b",
                                        "ä",
                                        "a\u0308",
                                        "日本",
                                        "🔒",
                                        "a{b}",
                                        "a:b",
                                        "plumless",  // one CRC-32
                                        "buckeroo",
                                        "costarring",  // one 32-bit FNV-1a
                                        "liquid",
                                        std::string(1024, 'k'),
                                        std::string(1023, 'k')};
    std::vector<core::holder_id> holders;
    for (const auto& key : keys) {
        holders.push_back(take(a(), key));
    }
    for (const auto& key : keys) {
        EXPECT_EQ(ask(b(), acquire_of(key, somebody())).what, verdict::held) << key;
    }
    for (std::size_t at = 0; at < keys.size(); ++at) {
        ASSERT_EQ(ask(a(), release_of(keys[at], holders[at])).what, verdict::released) << keys[at];
        for (std::size_t other = 0; other < keys.size(); ++other) {
            EXPECT_EQ(look(b(), keys[other]).holders.empty(), other <= at)
                << keys[other] << " after " << keys[at];
        }
    }
}

}  // namespace dibs::conformance
