// SPDX-License-Identifier: Apache-2.0
// Weights and capacities: the weights of the live holders never exceed the capacity.

#include "core/record.hpp"
#include "store/record/rules.hpp"
#include "suite.hpp"

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

namespace dibs::conformance {

namespace {

constexpr auto unlimited = core::share::unlimited;

class nobody_known final : public store::parties {
  public:
    [[nodiscard]] core::party who(std::uint64_t /*process*/) const override { return {}; }
};

/// Weights of the live holders, in order.
std::vector<std::uint32_t> weights_of(const std::vector<core::holder_info>& holders) {
    std::vector<std::uint32_t> weights;
    for (const auto& one : holders) {
        weights.push_back(one.weight);
    }
    std::sort(weights.begin(), weights.end());
    return weights;
}

}  // namespace

#define DIBS_NEEDS_SHARED_GRANTS()                              \
    if (!caps().shared) {                                       \
        GTEST_SKIP() << caps().name << " has no shared grants"; \
    }

TEST_P(Conformance, ASemaphoreHasSoManyPermits) {
    DIBS_NEEDS_SHARED_GRANTS();
    std::vector<core::holder_id> holders;
    for (int permit = 0; permit < 3; ++permit) {
        holders.push_back(somebody());
        EXPECT_EQ(
            ask(permit % 2 == 0 ? a() : b(), shared_acquire_of("k", holders.back(), 1, 3)).what,
            verdict::granted);
        pass(1s);
    }
    const auto held = ask(b(), shared_acquire_of("k", somebody(), 1, 3));
    EXPECT_EQ(held.what, verdict::held);
    EXPECT_EQ(held.holders.size(), 3U);
    EXPECT_EQ(held.retry_after, usual_ttl - 3s) << "until the first of them expires";
    EXPECT_EQ(look(a(), "k").part.capacity, 3U);
    EXPECT_EQ(ask(b(), release_of("k", holders[1])).what, verdict::released);
    EXPECT_EQ(ask(a(), shared_acquire_of("k", somebody(), 1, 3)).what, verdict::granted);
    EXPECT_EQ(ask(a(), shared_acquire_of("k", somebody(), 1, 3)).what, verdict::held);
}

TEST_P(Conformance, EachPermitExpiresForItself) {
    DIBS_NEEDS_SHARED_GRANTS();
    const auto first = shared_acquire_of("k", somebody(), 1, 2);
    const auto second = shared_acquire_of("k", somebody(), 1, 2);
    ask(a(), first);
    pass(5s);
    ask(b(), second);
    pass(5s);
    EXPECT_EQ(look(a(), "k").holders.size(), 1U);
    EXPECT_EQ(ask(a(), shared_acquire_of("k", somebody(), 1, 2)).what, verdict::granted);
    EXPECT_EQ(ask(b(), renew_of("k", second.holder)).what, verdict::renewed);
    EXPECT_EQ(ask(a(), renew_of("k", first.holder)).what, verdict::not_held);
}

TEST_P(Conformance, WeightsAreSummed) {
    DIBS_NEEDS_SHARED_GRANTS();
    const auto heavy = somebody();
    EXPECT_EQ(ask(a(), shared_acquire_of("k", heavy, 3, 5)).what, verdict::granted);
    EXPECT_EQ(ask(b(), shared_acquire_of("k", somebody(), 3, 5)).what, verdict::held);
    EXPECT_EQ(ask(b(), shared_acquire_of("k", somebody(), 2, 5)).what, verdict::granted);
    EXPECT_EQ(ask(b(), shared_acquire_of("k", somebody(), 1, 5)).what, verdict::held);
    ask(a(), release_of("k", heavy));
    EXPECT_EQ(ask(b(), shared_acquire_of("k", somebody(), 4, 5)).what, verdict::held);
    EXPECT_EQ(ask(b(), shared_acquire_of("k", somebody(), 3, 5)).what, verdict::granted);
}

TEST_P(Conformance, ReadersShareAndAWriterDoesNot) {
    DIBS_NEEDS_SHARED_GRANTS();
    std::vector<core::holder_id> readers;
    for (int reader = 0; reader < 5; ++reader) {
        readers.push_back(somebody());
        EXPECT_EQ(ask(a(), shared_acquire_of("k", readers.back(), 1, unlimited)).what,
                  verdict::granted);
    }
    const auto writer = somebody();
    for (const auto& reader : readers) {
        EXPECT_EQ(ask(b(), shared_acquire_of("k", writer, unlimited, unlimited)).what,
                  verdict::held);
        ask(a(), release_of("k", reader));
    }
    EXPECT_EQ(ask(b(), shared_acquire_of("k", writer, unlimited, unlimited)).what,
              verdict::granted);
    EXPECT_EQ(ask(a(), shared_acquire_of("k", somebody(), 1, unlimited)).what, verdict::held);
}

TEST_P(Conformance, AnExclusiveHolderKeepsOutWhoeverSharesAndIsKeptOut) {
    DIBS_NEEDS_SHARED_GRANTS();
    const auto alone = take(a(), "k");
    for (const auto capacity : {3U, unlimited}) {
        const auto refusal = ask(b(), shared_acquire_of("k", somebody(), 1, capacity));
        EXPECT_EQ(refusal.what, verdict::held) << "whatever they divide the key into";
        ASSERT_EQ(refusal.holders.size(), 1U);
    }
    ask(a(), release_of("k", alone));
    std::vector<core::holder_id> readers;
    for (int reader = 0; reader < 2; ++reader) {
        readers.push_back(somebody());
        ask(b(), shared_acquire_of("k", readers.back(), 1, unlimited));
        const auto refusal = ask(a(), acquire_of("k", somebody()));
        EXPECT_EQ(refusal.what, verdict::held);
        EXPECT_EQ(refusal.holders.size(), readers.size());
    }
    ask(b(), release_of("k", readers[0]));
    EXPECT_EQ(ask(a(), acquire_of("k", somebody())).what, verdict::held) << "one reader is left";
    ask(b(), release_of("k", readers[1]));
    EXPECT_EQ(ask(a(), acquire_of("k", somebody())).what, verdict::granted);
    EXPECT_EQ(look(b(), "k").part.capacity, 1U);
}

TEST_P(Conformance, EachShareIsShownWithItsWeight) {
    DIBS_NEEDS_SHARED_GRANTS();
    ask(a(), shared_acquire_of("k", somebody(), 3, 5));
    ask(b(), shared_acquire_of("k", somebody(), 2, 5));
    const auto shown = look(a(), "k");
    ASSERT_EQ(shown.holders.size(), 2U);
    EXPECT_EQ(shown.holders[0].weight + shown.holders[1].weight, 5U);
    EXPECT_EQ(shown.holders[0].weight * shown.holders[1].weight, 6U);
    EXPECT_EQ(shown.part.capacity, 5U);
    EXPECT_NE(shown.holders[0].self, shown.holders[1].self);
}

TEST_P(Conformance, AnAdoptedShareLeavesTheOthersAlone) {
    DIBS_NEEDS_SHARED_GRANTS();
    const auto first = somebody();
    const auto second = somebody();
    const auto adopter = somebody();
    const auto fence = ask(a(), shared_acquire_of("k", first, 1, 2)).fences.first;
    ask(a(), shared_acquire_of("k", second, 1, 2));
    auto asked = renew_of("k", first);
    asked.fences = 1;
    asked.adopt = {adopter, core::attachment::detached};
    const auto renewed = ask(b(), asked);
    ASSERT_EQ(renewed.what, verdict::renewed);
    EXPECT_GT(renewed.fences.first, fence);
    EXPECT_EQ(ask(a(), renew_of("k", first)).what, verdict::not_held);
    EXPECT_EQ(ask(a(), renew_of("k", second)).what, verdict::renewed);
    EXPECT_EQ(ask(b(), release_of("k", adopter)).what, verdict::released);
    EXPECT_EQ(look(a(), "k").holders.size(), 1U);
}

TEST_P(Conformance, AWaitingWriterStopsLaterReaders) {
    DIBS_NEEDS_SHARED_GRANTS();
    if (!caps().queues) {
        GTEST_SKIP() << caps().name << " keeps no queue";
    }
    const auto reader = somebody();
    const auto writer = queued_acquire_of("k", somebody());
    ask(a(), shared_acquire_of("k", reader, 1, unlimited));
    EXPECT_EQ(ask(b(), writer).what, verdict::held);
    auto later = shared_acquire_of("k", somebody(), 1, unlimited);
    EXPECT_EQ(ask(a(), later).what, verdict::held) << "also one that races";
    later.queue = 5s;
    EXPECT_EQ(ask(a(), later).what, verdict::held);
    ask(a(), release_of("k", reader));
    EXPECT_EQ(ask(a(), later).what, verdict::held) << "the writer came first";
    EXPECT_EQ(ask(b(), writer).what, verdict::granted);
    ask(b(), release_of("k", writer.holder));
    EXPECT_EQ(ask(a(), later).what, verdict::granted);
}

TEST_P(Conformance, EachReaderOfTheQueueLetsTheNextOneIn) {
    DIBS_NEEDS_SHARED_GRANTS();
    if (!caps().queues || !caps().wakes) {
        GTEST_SKIP() << caps().name << " wakes nobody of a queue";
    }
    const auto writer = take(a(), "k");
    std::vector<core::acquire> readers;
    for (int number = 0; number < 2; ++number) {
        readers.push_back(shared_acquire_of("k", somebody(), 1, unlimited));
        readers.back().queue = 5s;
        EXPECT_EQ(ask(number == 0 ? a() : b(), readers.back()).what, verdict::held);
    }
    const auto second = watch(b(), "k");
    ASSERT_TRUE(run_until([&] { return second->ready > 0; }));
    ask(a(), release_of("k", writer));
    EXPECT_EQ(ask(a(), readers[0]).what, verdict::granted);
    EXPECT_TRUE(run_until([&] { return second->wakes > 0; }));
    EXPECT_EQ(ask(b(), readers[1]).what, verdict::granted);
    b().unwatch(second->id);
}

TEST_P(Conformance, TheCapacityIsFixedWhileAnybodyHolds) {
    DIBS_NEEDS_SHARED_GRANTS();
    const auto holder = somebody();
    ask(a(), shared_acquire_of("k", holder, 1, 2));
    const auto before = picture(a(), "k");
    const auto refusal = ask(b(), shared_acquire_of("k", somebody(), 1, 3));
    EXPECT_EQ(refusal.what, verdict::failed);
    EXPECT_EQ(refusal.took, effect::no);
    EXPECT_EQ(refusal.error, errc::capacity_differs);
    EXPECT_EQ(picture(a(), "k"), before);
    pass(usual_ttl);
    EXPECT_EQ(ask(b(), shared_acquire_of("k", somebody(), 1, 3)).what, verdict::granted)
        << "an expired holder binds nobody";
    EXPECT_EQ(look(b(), "k").part.capacity, 3U);
}

TEST_P(Conformance, SharedGrantsHaveDistinctFences) {
    DIBS_NEEDS_SHARED_GRANTS();
    core::fence_number last = 0;
    for (int permit = 0; permit < 10; ++permit) {
        const auto granted = ask(a(), shared_acquire_of("k", somebody(), 1, 10));
        EXPECT_GT(granted.fences.first, last);
        last = granted.fences.last;
    }
}

TEST_P(Conformance, RevokingOnePermitLeavesTheOthers) {
    DIBS_NEEDS_SHARED_GRANTS();
    const auto first = somebody();
    const auto second = somebody();
    const auto fence = ask(a(), shared_acquire_of("k", first, 1, 2)).fences.first;
    ask(a(), shared_acquire_of("k", second, 1, 2));
    EXPECT_EQ(ask(b(), revoke_of("k", fence)).what, verdict::revoked);
    EXPECT_EQ(ask(a(), renew_of("k", first)).lost, loss::revoked);
    EXPECT_EQ(ask(a(), renew_of("k", second)).what, verdict::renewed);
    EXPECT_EQ(ask(b(), shared_acquire_of("k", somebody(), 1, 2)).what, verdict::granted);
}

TEST_P(Conformance, NoRevokedPermitLeavesALateResult) {
    DIBS_NEEDS_SHARED_GRANTS();
    const auto first = somebody();
    const auto second = somebody();
    const auto first_fence = ask(a(), shared_acquire_of("k", first, 1, 2)).fences.first;
    const auto second_fence = ask(a(), shared_acquire_of("k", second, 1, 2)).fences.first;
    ask(b(), revoke_of("k", second_fence));
    ask(b(), revoke_of("k", first_fence));
    EXPECT_EQ(ask(a(), finish_of("k", second, result_of("late", 1h, 1h), true)).what,
              verdict::not_held)
        << "its fence is the largest, but it was revoked";
}

TEST_P(Conformance, OnlyTheLastOfSeveralExpiredPermitsFinishesLate) {
    DIBS_NEEDS_SHARED_GRANTS();
    const auto first = somebody();
    const auto second = somebody();
    ask(a(), shared_acquire_of("k", first, 1, 2));
    ask(b(), shared_acquire_of("k", second, 1, 2));
    pass(usual_ttl);
    EXPECT_EQ(ask(a(), finish_of("k", first, result_of("first", 1h, 1h), true)).what,
              verdict::not_held)
        << "a later grant was given";
    EXPECT_FALSE(look(a(), "k").result);
    EXPECT_EQ(ask(b(), finish_of("k", second, result_of("second", 1h, 1h), true)).what,
              verdict::finished);
}

// Goal: every store decides about shares as the rules do. Method: random steps on one key, each
// carried out by the store and by the rules at the moment that the store tells. Expiries lie half a
// minute away from every step, so that no machine is too slow for it.
TEST_P(Conformance, SharesAreDecidedAsTheRulesSay) {
    DIBS_NEEDS_SHARED_GRANTS();
    constexpr std::array parts{core::share{1, 1},
                               core::share{1, 3},
                               core::share{2, 3},
                               core::share{3, 3},
                               core::share{1, unlimited}};
    const nobody_known nobody;
    for (unsigned seed = 1; seed <= 3; ++seed) {
        std::mt19937 random{seed};
        const auto below = [&random](std::size_t limit) { return random() % limit; };
        const auto key = "k" + std::to_string(seed);
        core::record kept;
        core::store_now now{};
        std::vector<core::fence_number> fences{1};
        for (int step = 0; step < 150; ++step) {
            const auto holder = holder_of(100 + below(5));
            core::verb what;
            switch (below(8)) {
                case 0: {
                    const microseconds time = 1min * below(3);
                    pass(time);
                    now.lease += time;
                    now.wall += time;
                    continue;
                }
                case 1:
                    what = renew_of(key, holder, 30s + 1min * below(3));
                    break;
                case 2:
                case 3:
                    what = release_of(key, holder);
                    break;
                case 4:
                    what = revoke_of(key, fences[below(fences.size())]);
                    break;
                default: {
                    auto asked = acquire_of(key, holder, 30s + 1min * below(3));
                    // Mostly those that go together, or nothing would be shared for long.
                    asked.part = below(4) == 0 ? parts[below(parts.size())] : parts[1 + below(2)];
                    what = asked;
                }
            }
            const auto given = ask(below(2) == 0 ? a() : b(), what);
            if (given.took == effect::yes) {
                now = given.now;
            }
            const auto decided = store::apply(what, kept, {.now = now, .self = 1, .who = nobody});
            const auto where = "seed " + std::to_string(seed) + ", step " + std::to_string(step);
            ASSERT_EQ(given.what, decided.reply.what) << where << ": " << given.detail;
            ASSERT_EQ(given.error, decided.reply.error) << where;
            ASSERT_EQ(weights_of(given.holders), weights_of(decided.reply.holders)) << where;
            if (given.what == verdict::granted) {
                // Which fence it is depends on what else the store has granted.
                for (auto& grant : kept.grants) {
                    if (grant.holder == holder) {
                        grant.fences = given.fences;
                    }
                }
                kept.fence = std::max(kept.fence, given.fences.last);
                fences.push_back(given.fences.first);
            }
        }
    }
}

}  // namespace dibs::conformance
