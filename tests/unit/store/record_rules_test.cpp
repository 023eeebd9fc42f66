// SPDX-License-Identifier: Apache-2.0
// The rules of the record. The steps in their order are the conformance suite's; here are the
// corners that no store can be brought to at will, and what holds after any sequence of verbs.

#include "store/record/rules.hpp"
#include "support/manual_store_clock.hpp"
#include "support/verbs.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace dibs::store {

namespace {

using namespace std::chrono_literals;
using namespace dibs::testing;
using core::effect;
using core::loss;
using core::microseconds;
using core::verdict;

class numbered_parties final : public parties {
  public:
    [[nodiscard]] core::party who(std::uint64_t process) const override {
        core::party named;
        named.pid = static_cast<std::int64_t>(process);
        return named;
    }
};

class RecordRules : public ::testing::Test {
  protected:
    step apply_verb(core::verb what, std::uint64_t process = 1) {
        return apply(what, kept, {clock.now(), process, who});
    }

    manual_store_clock clock;
    numbered_parties who;
    core::record kept;
};

/// Everything that is stored, as text to compare.
std::string stored(const core::record& kept) {
    std::ostringstream out;
    out << kept.fence << ' ' << kept.capacity << ' ' << kept.revoked << ' '
        << kept.blocked_until.time_since_epoch().count() << ' ' << kept.blocked_reason;
    for (const auto& one : kept.grants) {
        out << " {" << one.holder.text() << ' ' << one.fences.first << ' ' << one.fences.last << ' '
            << one.weight << ' ' << static_cast<int>(one.attached) << ' '
            << one.granted.time_since_epoch().count() << ' '
            << one.expires.time_since_epoch().count() << ' ' << one.process << '}';
    }
    if (kept.result) {
        out << " [" << kept.result->value << ' ' << kept.result->fence << ' '
            << kept.result->is_mark << ' ' << kept.result->written.time_since_epoch().count() << ' '
            << kept.result->fresh_until.time_since_epoch().count() << ' '
            << kept.result->keep_until.time_since_epoch().count() << ']';
    }
    return out.str();
}

}  // namespace

TEST_F(RecordRules, SayWhetherTheRecordChanged) {
    EXPECT_TRUE(apply_verb(acquire_of("k", holder_of(1))).changed);
    EXPECT_TRUE(apply_verb(acquire_of("k", holder_of(1))).changed) << "the ttl of the retry";
    EXPECT_FALSE(apply_verb(acquire_of("k", holder_of(2))).changed);
    EXPECT_FALSE(apply_verb(renew_of("k", holder_of(2))).changed);
    EXPECT_TRUE(apply_verb(renew_of("k", holder_of(1))).changed);
    EXPECT_FALSE(apply_verb(release_of("k", holder_of(2))).changed);
    EXPECT_FALSE(apply_verb(revoke_of("k", 1)).changed);
    EXPECT_TRUE(apply_verb(release_of("k", holder_of(1))).changed);
    EXPECT_TRUE(apply_verb(block_of("k", 1s, "maintenance")).changed);
    EXPECT_FALSE(apply_verb(acquire_of("k", holder_of(1))).changed);
}

TEST_F(RecordRules, SayWhetherAWaiterMayHaveTheKeyNow) {
    EXPECT_FALSE(apply_verb(acquire_of("k", holder_of(1))).freed);
    EXPECT_FALSE(apply_verb(renew_of("k", holder_of(1))).freed);
    EXPECT_TRUE(apply_verb(release_of("k", holder_of(1))).freed);
    EXPECT_FALSE(apply_verb(release_of("k", holder_of(1))).freed);
    EXPECT_TRUE(apply_verb(shared_acquire_of("k", holder_of(1), 1, 2)).freed) << "one more fits";
    EXPECT_FALSE(apply_verb(shared_acquire_of("k", holder_of(2), 1, 2)).freed);
    EXPECT_TRUE(apply_verb(revoke_of("k", kept.fence)).freed);
    EXPECT_FALSE(apply_verb(block_of("k", 0s, "")).freed) << "no hold was in force";
    EXPECT_FALSE(apply_verb(block_of("k", 1s, "maintenance")).freed);
    EXPECT_TRUE(apply_verb(block_of("k", 0s, "")).freed);
}

TEST_F(RecordRules, RefuseWhatMakesNoSense) {
    std::vector<core::verb> nonsense{acquire_of("k", holder_of(1), 0s),
                                     acquire_of("k", holder_of(1), -1s),
                                     acquire_of("k", core::holder_id{}),
                                     shared_acquire_of("k", holder_of(1), 0, 1),
                                     shared_acquire_of("k", holder_of(1), 2, 1),
                                     shared_acquire_of("k", holder_of(1), 0, 0),
                                     renew_of("k", holder_of(1), 0s),
                                     finish_of("k", holder_of(1), result_of("", -1s, 1s)),
                                     finish_of("k", holder_of(1), result_of("", 0s, -1s)),
                                     block_of("k", -1s, "")};
    auto adopted_by_nobody = renew_of("k", holder_of(1));
    adopted_by_nobody.adopt = core::renew::change{};
    nonsense.push_back(adopted_by_nobody);
    auto marked = acquire_of("k", holder_of(1));
    marked.mark = result_of("", -1s, 1s);
    nonsense.push_back(marked);
    auto beyond = acquire_of("k", holder_of(1));
    beyond.floor = std::numeric_limits<std::int64_t>::max();
    nonsense.push_back(beyond);
    for (std::size_t at = 0; at < nonsense.size(); ++at) {
        const auto taken = apply_verb(nonsense[at]);
        EXPECT_EQ(taken.reply.what, verdict::failed) << at;
        EXPECT_EQ(taken.reply.took, effect::no) << at;
        EXPECT_EQ(taken.reply.error, errc::invalid_argument) << at;
        EXPECT_FALSE(taken.changed) << at;
        EXPECT_EQ(stored(kept), stored(core::record{})) << at;
    }
}

TEST_F(RecordRules, TakeTheLongestOfTimesWithoutOverflow) {
    auto asked = acquire_of("k", holder_of(1), microseconds::max());
    asked.mark = result_of("for ever", microseconds::max(), microseconds::max());
    EXPECT_EQ(apply_verb(asked).reply.expires, core::store_instant::max());
    clock.advance(24h * 36500);
    EXPECT_EQ(apply_verb(acquire_of("k", holder_of(2))).reply.what, verdict::held);
    EXPECT_EQ(kept.result->keep_until, core::wall_instant::max());
}

TEST_F(RecordRules, WhatIsNeverFreshIsNotFreshForACalendarThatIsBehindEither) {
    auto asked = acquire_of("k", holder_of(1));
    asked.mark = result_of("started", 0s, 1h);
    EXPECT_EQ(apply_verb(asked).reply.what, verdict::granted);
    apply_verb(release_of("k", holder_of(1)));
    clock.step_wall(-24h);
    const auto next = apply_verb(acquire_of("k", holder_of(2)));
    EXPECT_EQ(next.reply.what, verdict::granted);
    ASSERT_TRUE(next.reply.result);
    EXPECT_EQ(next.reply.result->value, "started");
}

TEST_F(RecordRules, ADeadHolderIsNoHolder) {
    apply_verb(acquire_of("k", holder_of(1)));
    kept.grants.front().dead = true;
    EXPECT_EQ(apply_verb(renew_of("k", holder_of(1))).reply.what, verdict::not_held);
    EXPECT_TRUE(describe("k", kept, {clock.now(), 1, who}).holders.empty());
    EXPECT_EQ(apply_verb(acquire_of("k", holder_of(2))).reply.what, verdict::granted);
    EXPECT_EQ(kept.grants.size(), 1U) << "its trace goes with the next grant";
}

TEST_F(RecordRules, AGrantBelongsToTheProcessThatAskedOrAdopted) {
    apply_verb(acquire_of("k", holder_of(1)), 7);
    EXPECT_EQ(kept.grants.front().process, 7U);
    apply_verb(renew_of("k", holder_of(1)), 8);
    EXPECT_EQ(kept.grants.front().process, 7U);
    auto adopt = renew_of("k", holder_of(1));
    adopt.adopt = core::renew::change{holder_of(2), core::attachment::attached};
    apply_verb(adopt, 9);
    EXPECT_EQ(kept.grants.front().process, 9U);
    const auto held = apply_verb(acquire_of("k", holder_of(3)), 9).reply;
    ASSERT_EQ(held.holders.size(), 1U);
    EXPECT_EQ(held.holders.front().who.pid, 9);
    EXPECT_TRUE(held.holders.front().self);
}

TEST_F(RecordRules, NoHolderAdoptsASecondGrantOfTheKey) {
    apply_verb(shared_acquire_of("k", holder_of(1), 1, 2));
    apply_verb(shared_acquire_of("k", holder_of(2), 1, 2));
    const auto before = stored(kept);
    auto adopt = renew_of("k", holder_of(1));
    adopt.adopt = core::renew::change{holder_of(2), core::attachment::attached};
    EXPECT_EQ(apply_verb(adopt).reply.error, errc::invalid_argument);
    EXPECT_EQ(stored(kept), before);
}

TEST_F(RecordRules, ARecordIsPurgeableWhenNothingIsLeftInIt) {
    const auto now = [&] { return clock.now(); };
    apply_verb(acquire_of("k", holder_of(1)));
    clock.advance(1s);
    EXPECT_FALSE(purgeable(kept, now())) << "held";
    apply_verb(finish_of("k", holder_of(1), result_of("outcome", 0s, 1h)));
    EXPECT_FALSE(purgeable(kept, now())) << "a result";
    clock.advance(1h);
    EXPECT_TRUE(purgeable(kept, now()));
    apply_verb(block_of("k", 1h, "maintenance"));
    EXPECT_FALSE(purgeable(kept, now())) << "a hold";
    clock.advance(1h);
    EXPECT_TRUE(purgeable(kept, now()));
    clock.step_wall(-24h);
    EXPECT_FALSE(purgeable(kept, now())) << "the clock is behind its fence";
}

TEST_F(RecordRules, ABlockNeverReachesTheFencesOfARecordThatWasPurged) {
    // Fences of one caller after another, handed on inside a block, are all in use: the next grant
    // exceeds the last.
    auto asked = acquire_of("k", holder_of(1));
    asked.fences = 64;
    const auto last = apply_verb(asked).reply.fences.last;
    apply_verb(release_of("k", holder_of(1)));
    for (int passed = 0; passed < 3000; ++passed) {
        if (purgeable(kept, clock.now())) {
            kept = {};
        }
        auto again = kept;
        const auto next = apply(asked, again, {clock.now(), 1, who}).reply.fences;
        ASSERT_GT(next.first, last) << "look " << passed;
        clock.advance(passed < 1000 ? 1us : 1ms);
    }
    EXPECT_TRUE(purgeable(kept, clock.now()) || kept.fence == 0) << "not kept for ever";
}

TEST_F(RecordRules, ALateFinishIsWaitedForBeforeARecordIsPurged) {
    apply_verb(acquire_of("k", holder_of(1)));
    clock.advance(usual_ttl + 30min);
    EXPECT_FALSE(purgeable(kept, clock.now()));
    auto dead = kept;
    dead.grants.front().dead = true;
    EXPECT_TRUE(purgeable(dead, clock.now())) << "the dead finish nothing";
    clock.advance(30min);
    EXPECT_TRUE(purgeable(kept, clock.now()));
}

// Any sequence of verbs, on one key, by few holders, with time passing between them.
RC_GTEST_PROP(RecordRulesProperty, HoldAfterAnySequenceOfVerbs, ()) {
    manual_store_clock clock;
    const numbered_parties who;
    core::record kept;
    core::fence_number last_fence = 0;
    // The model: until when each holder id has the key, by what the answers said.
    struct belief {
        core::store_instant expires;
        std::uint32_t weight;
    };
    std::map<core::holder_id, belief> holders;

    const auto steps = *rc::gen::inRange(1, 60);
    for (int at = 0; at < steps; ++at) {
        clock.advance(microseconds{*rc::gen::element(0, 1, 400'000, 3'000'000)});
        if (*rc::gen::inRange(0, 10) == 0) {
            clock.step_wall(microseconds{*rc::gen::inRange(-5'000'000, 5'000'000)});
        }
        const auto holder = holder_of(*rc::gen::inRange<std::uint64_t>(1, 5));
        const auto ttl = microseconds{*rc::gen::element(1'000'000, 5'000'000)};
        core::verb what;
        switch (*rc::gen::inRange(0, 8)) {
            case 0:
            case 1:
            case 2: {
                auto asked = acquire_of("k", holder, ttl);
                asked.part = *rc::gen::element(
                    core::share{1, 1}, core::share{1, 3}, core::share{2, 3}, core::share{3, 3});
                asked.fences = *rc::gen::inRange<std::uint32_t>(0, 4);
                asked.seen = *rc::gen::element(core::fence_number{0}, last_fence);
                if (*rc::gen::arbitrary<bool>()) {
                    asked.mark = result_of("mark", microseconds{*rc::gen::element(0, 500'000)}, 5s);
                }
                if (*rc::gen::inRange(0, 4) == 0) {
                    asked.not_after = clock.now().lease + microseconds{*rc::gen::element(-1, 0, 1)};
                }
                what = asked;
                break;
            }
            case 3: {
                auto asked = renew_of("k", holder, ttl);
                asked.fences = *rc::gen::inRange<std::uint32_t>(0, 3);
                if (*rc::gen::inRange(0, 3) == 0) {
                    asked.adopt =
                        core::renew::change{holder_of(*rc::gen::inRange<std::uint64_t>(1, 5)),
                                            core::attachment::detached};
                }
                what = asked;
                break;
            }
            case 4:
                what = release_of("k", holder);
                break;
            case 5:
                what = finish_of(
                    "k", holder, result_of("result", 400ms, 4s), *rc::gen::arbitrary<bool>());
                break;
            case 6:
                what = revoke_of("k", *rc::gen::element(last_fence, last_fence - 1));
                break;
            default:
                what = block_of("k", microseconds{*rc::gen::element(0, 1'000'000)}, "hold");
                break;
        }

        const auto now = clock.now();
        std::erase_if(holders, [&](const auto& one) { return one.second.expires <= now.lease; });
        const bool held_it = holders.contains(holder);
        const auto before = stored(kept);
        const auto revocable = kept.grants;
        const auto taken = apply(what, kept, {now, 1, who});
        const auto& reply = taken.reply;

        RC_ASSERT(taken.changed || stored(kept) == before);
        RC_ASSERT(kept.fence >= last_fence);
        if (reply.what == verdict::granted) {
            if (held_it) {
                RC_ASSERT(kept.fence == last_fence);
            } else {
                RC_ASSERT(reply.fences.first > last_fence);
                RC_ASSERT(reply.fences.last == kept.fence);
                std::uint64_t in_use = std::get<core::acquire>(what).part.weight;
                for (const auto& [id, one] : holders) {
                    in_use += one.weight;
                }
                RC_ASSERT(in_use <= std::get<core::acquire>(what).part.capacity);
                holders[holder].weight = std::get<core::acquire>(what).part.weight;
            }
            holders[holder].expires = reply.expires;
            RC_ASSERT(reply.expires == now.lease + ttl);
        } else if (reply.what == verdict::renewed) {
            RC_ASSERT(held_it);
            auto moved = holders[holder];
            moved.expires = reply.expires;
            holders.erase(holder);
            const auto& adopt = std::get<core::renew>(what).adopt;
            holders[adopt ? adopt->holder : holder] = moved;
        } else if (reply.what == verdict::released) {
            RC_ASSERT(held_it);
            holders.erase(holder);
        } else if (reply.what == verdict::finished) {
            RC_ASSERT(held_it || std::get<core::release>(what).late);
            RC_ASSERT(kept.result->value == "result");
            RC_ASSERT(held_it || kept.result->fence == kept.fence);
            holders.erase(holder);
        } else if (reply.what == verdict::not_held) {
            RC_ASSERT(!held_it);
            RC_ASSERT(reply.lost != loss::none);
        } else if (reply.what == verdict::revoked) {
            const auto fence = std::get<core::revoke>(what).fence;
            for (const auto& one : revocable) {
                if (one.fences.contains(fence) && one.live(now)) {
                    RC_ASSERT(holders.erase(one.holder) == 1U);
                }
            }
        } else if (reply.what == verdict::held) {
            RC_ASSERT(!holders.empty());
            RC_ASSERT(reply.holders.size() == holders.size());
        }
        if (!taken.changed) {
            RC_ASSERT(reply.what != verdict::granted && reply.what != verdict::renewed &&
                      reply.what != verdict::released && reply.what != verdict::finished);
        }
        // What the record says is what the answers said.
        std::size_t live = 0;
        std::uint64_t in_use = 0;
        for (const auto& one : kept.grants) {
            if (one.live(now)) {
                ++live;
                in_use += one.weight;
                RC_ASSERT(holders.contains(one.holder));
                RC_ASSERT(holders[one.holder].expires == one.expires);
            }
        }
        RC_ASSERT(live == holders.size());
        RC_ASSERT(in_use <= kept.capacity || live == 0);
        RC_ASSERT(!purgeable(kept, now) || live == 0);
        last_fence = kept.fence;
    }
}

}  // namespace dibs::store
