// SPDX-License-Identifier: Apache-2.0
// Fences rise in the order of the grants, whatever happens between them.

#include "suite.hpp"

#include <algorithm>
#include <memory>

namespace dibs::conformance {

namespace {

core::fence_number micros(const core::answer& given) {
    return static_cast<core::fence_number>(given.now.wall.time_since_epoch().count());
}

}  // namespace

TEST_P(Conformance, FencesRiseOverAThousandGrantsOfTwoProcesses) {
    constexpr std::size_t grants = 1000;
    std::vector<core::fence_number> fences;
    struct contender {
        store::store& through;
        std::size_t granted = 0;
        std::size_t busy = 0;
    };
    contender contenders[]{{a()}, {b()}};
    std::size_t broken = 0;
    std::size_t under_way = 0;
    // Each asks again as soon as it has its answer, so that their steps meet in the store in any
    // order. A grant is told before its release is sent, and the next grant comes after that: the
    // order of telling is the order of granting.
    std::function<void(contender&)> go_on = [&](contender& who) {
        const auto holder = somebody();
        std::vector<core::entry> batch;
        batch.push_back(entry(acquire_of("k", holder)));
        ++under_way;
        who.through.execute(usual_lane, std::move(batch), [&, holder](store::answers told) {
            --under_way;
            if (told.front().what == verdict::held) {
                ++who.busy;
                if (fences.size() < grants) {
                    go_on(who);
                }
                return;
            }
            if (told.front().what != verdict::granted) {
                ++broken;
                return;
            }
            fences.push_back(told.front().fences.last);
            ++who.granted;
            std::vector<core::entry> next;
            next.push_back(entry(release_of("k", holder)));
            ++under_way;
            who.through.execute(usual_lane, std::move(next), [&](store::answers ended) {
                --under_way;
                broken += ended.front().what == verdict::released ? 0 : 1;
                if (fences.size() < grants) {
                    go_on(who);
                }
            });
        });
    };
    for (auto& who : contenders) {
        go_on(who);
    }
    ASSERT_TRUE(run_until([&] { return fences.size() >= grants || broken > 0; }));
    // An acquire that was on its way may be granted still, and released after that.
    ASSERT_TRUE(run_until([&] { return under_way == 0; }));
    EXPECT_EQ(broken, 0U);
    EXPECT_EQ(std::adjacent_find(fences.begin(), fences.end(), std::greater_equal<>{}),
              fences.end())
        << "not strictly rising";
    RecordProperty("granted_by_a", static_cast<int>(contenders[0].granted));
    RecordProperty("granted_by_b", static_cast<int>(contenders[1].granted));
}

TEST_P(Conformance, TheFenceIsTheClockWhenThatIsAhead) {
    const auto granted = ask(a(), acquire_of("k", somebody()));
    EXPECT_EQ(granted.fences.last, micros(granted));
}

TEST_P(Conformance, FencesRiseWhenTheCalendarIsSetBack) {
    const auto first = take(a(), "k");
    const auto before = fences_of(a(), "k").last;
    ask(a(), release_of("k", first));
    world().step_calendar(-24h);
    // Others write meanwhile: this record must not be forgotten, the clock is behind it.
    for (int other = 0; other < 50; ++other) {
        take(b(), "other " + std::to_string(other));
    }
    EXPECT_GT(ask(b(), acquire_of("k", somebody())).fences.first, before);
}

TEST_P(Conformance, FencesRiseOverThePurgeOfFreeRecords) {
    constexpr int records = 60;
    std::vector<core::fence_number> before;
    for (int number = 0; number < records; ++number) {
        const auto key = "daily " + std::to_string(number);
        const auto holder = take(a(), key);
        before.push_back(fences_of(a(), key).last);
        ask(a(), release_of(key, holder));
    }
    pass(48h);
    for (int other = 0; other < 2 * records; ++other) {
        const auto holder = take(b(), "busy");
        ask(b(), release_of("busy", holder));
    }
    for (int number = 0; number < records; ++number) {
        const auto granted = ask(b(), acquire_of("daily " + std::to_string(number), somebody()));
        EXPECT_GT(granted.fences.first, before[static_cast<std::size_t>(number)]);
    }
}

TEST_P(Conformance, ThePurgeTakesNothingThatIsNeeded) {
    const auto finisher = take(a(), "result");
    ask(a(), finish_of("result", finisher, result_of("kept", 0s, 100h)));
    ask(a(), block_of("hold", 100h, "maintenance"));
    ask(a(), acquire_of("held", somebody(), 100h));
    std::unique_ptr<watch_probe> waiting;
    if (caps().wakes) {
        const auto passing = take(a(), "waited for");
        waiting = watch(b(), "waited for");
        ask(a(), release_of("waited for", passing));
    }
    pass(48h);
    for (int other = 0; other < 100; ++other) {
        const auto holder = take(b(), "busy");
        ask(b(), release_of("busy", holder));
    }
    EXPECT_TRUE(look(b(), "result").result);
    EXPECT_EQ(look(b(), "hold").blocked_reason, "maintenance");
    EXPECT_EQ(look(b(), "held").holders.size(), 1U);
    if (waiting) {
        EXPECT_EQ(look(a(), "waited for").waiters, 1U);
        b().unwatch(waiting->id);
    }
}

TEST_P(Conformance, TheFloorIsExceeded) {
    auto asked = acquire_of("k", somebody());
    asked.floor = micros(ask(a(), acquire_of("clock", somebody()))) + 1'000'000'000;
    const auto granted = ask(a(), asked);
    EXPECT_GT(granted.fences.first, asked.floor);
    ask(a(), release_of("k", asked.holder));
    EXPECT_GT(ask(b(), acquire_of("k", somebody())).fences.first, granted.fences.last)
        << "what the floor lifted stays lifted";
}

TEST_P(Conformance, ABlockOfFencesNeverOutrunsTheClock) {
    auto asked = acquire_of("k", somebody());
    asked.fences = 10;
    const auto first = ask(a(), asked);
    EXPECT_EQ(first.fences.last - first.fences.first + 1, 10U);
    EXPECT_EQ(first.fences.last, micros(first));
    ask(a(), release_of("k", asked.holder));

    asked.holder = somebody();
    const auto no_time_passed = ask(b(), asked);
    EXPECT_EQ(no_time_passed.fences.first, first.fences.last + 1);
    EXPECT_EQ(no_time_passed.fences.last, no_time_passed.fences.first) << "fewer, never none";
    ask(b(), release_of("k", asked.holder));

    pass(5us);
    asked.holder = somebody();
    const auto five_later = ask(a(), asked);
    EXPECT_GT(five_later.fences.first, no_time_passed.fences.last);
    EXPECT_LE(five_later.fences.last, micros(five_later));
    EXPECT_LE(five_later.fences.last - five_later.fences.first + 1, 5U);
}

TEST_P(Conformance, AGrantWithoutATraceExcludesAndItsFencesRise) {
    auto asked = acquire_of("k", somebody());
    asked.traced = false;
    core::fence_number before = 0;
    for (int round = 0; round < 4; ++round) {
        asked.holder = somebody();
        const auto granted = ask(a(), asked);
        ASSERT_EQ(granted.what, verdict::granted);
        EXPECT_GT(granted.fences.first, before);
        before = granted.fences.last;
        EXPECT_EQ(ask(b(), acquire_of("k", somebody())).what, verdict::held);
        EXPECT_EQ(look(b(), "k").fence, before);
        EXPECT_EQ(ask(a(), renew_of("k", asked.holder)).what, verdict::renewed);
        if (round % 2 == 0) {
            EXPECT_EQ(ask(a(), release_of("k", asked.holder)).what, verdict::released);
        } else {
            outlive();
        }
        EXPECT_EQ(ask(a(), renew_of("k", asked.holder)).what, verdict::not_held);
    }
    EXPECT_GT(ask(b(), acquire_of("k", somebody())).fences.first, before);
}

TEST_P(Conformance, ARenewalMayReplaceTheBlockByAHigherOne) {
    const auto holder = somebody();
    const auto granted = ask(a(), acquire_of("k", holder));
    pass(1s);
    auto asked = renew_of("k", holder);
    asked.fences = 8;
    const auto renewed = ask(a(), asked);
    ASSERT_EQ(renewed.what, verdict::renewed);
    EXPECT_GT(renewed.fences.first, granted.fences.last);
    EXPECT_EQ(renewed.fences.last - renewed.fences.first + 1, 8U);
    EXPECT_LE(renewed.fences.last, micros(renewed));
    EXPECT_EQ(fences_of(b(), "k"), renewed.fences);
    EXPECT_EQ(look(b(), "k").fence, renewed.fences.last);
    ask(a(), release_of("k", holder));
    EXPECT_GT(ask(b(), acquire_of("k", somebody())).fences.first, renewed.fences.last);
}

TEST_P(Conformance, AnAdopterGetsAHigherFenceInTheSameStep) {
    DIBS_NEEDS_HANDING_OVER();
    const auto giver = somebody();
    const auto granted = ask(a(), acquire_of("k", giver));
    auto asked = renew_of("k", giver);
    asked.fences = 1;
    const auto adopter = somebody();
    asked.adopt = core::renew::change{adopter, core::attachment::attached};
    const auto adopted = ask(b(), asked);
    ASSERT_EQ(adopted.what, verdict::renewed);
    EXPECT_GT(adopted.fences.first, granted.fences.last);
    EXPECT_EQ(adopted.fences.first, adopted.fences.last);
    EXPECT_EQ(fences_of(a(), "k"), adopted.fences);
    EXPECT_EQ(ask(b(), renew_of("k", adopter)).fences, adopted.fences);
    EXPECT_EQ(ask(a(), renew_of("k", giver)).what, verdict::not_held);
}

}  // namespace dibs::conformance
