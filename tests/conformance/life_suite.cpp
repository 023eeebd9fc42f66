// SPDX-License-Identifier: Apache-2.0
// The life of a store object: closing, dying, coming back.

#include "suite.hpp"

#include <utility>

namespace dibs::conformance {

TEST_P(Conformance, CloseAnswersWhatIsUnderWayBeforeItReturns) {
    auto third = open("host-c");
    constexpr int batches = 30;
    int answered = 0;
    bool told_twice = false;
    std::vector<core::answer> given;
    std::vector<core::holder_id> holders;
    for (int at = 0; at < batches; ++at) {
        holders.push_back(somebody());
        std::vector<core::entry> batch;
        auto asked = acquire_of("k" + std::to_string(at), holders.back());
        asked.attached = core::attachment::detached;
        batch.push_back(entry(asked));
        third->execute(usual_lane, std::move(batch), [&, told = false](store::answers all) mutable {
            told_twice = told_twice || std::exchange(told, true);
            ++answered;
            given.push_back(all.at(0));
        });
    }
    bool listed = false;
    third->list("", "", 10, [&](core::page) { listed = true; });
    third->close();
    EXPECT_EQ(answered, batches);
    EXPECT_TRUE(listed);
    third->close();
    settle({&a(), &b()});
    EXPECT_EQ(answered, batches) << "nothing is told after close";
    EXPECT_FALSE(told_twice);
    for (int at = 0; at < batches; ++at) {
        const auto& answer = given[static_cast<std::size_t>(at)];
        const bool there = !look(a(), "k" + std::to_string(at)).holders.empty();
        if (answer.took == effect::yes) {
            EXPECT_EQ(answer.what, verdict::granted);
            EXPECT_TRUE(there);
        } else if (answer.took == effect::no) {
            EXPECT_FALSE(there) << "after \"no\" the step is never executed";
        }
    }
}

TEST_P(Conformance, NoWakeComesAfterClose) {
    if (!caps().wakes) {
        GTEST_SKIP() << caps().name << " wakes nobody: its users poll";
    }
    const auto holder = take(a(), "k");
    auto third = open("host-c");
    const auto probe = watch(*third, "k");
    const auto other = watch(b(), "k");
    third->close();
    const auto before = probe->wakes;
    ask(a(), release_of("k", holder));
    EXPECT_TRUE(run_until([&] { return other->wakes > 0; }));
    settle({&a(), &b()});
    EXPECT_EQ(probe->wakes, before);
    b().unwatch(other->id);
}

TEST_P(Conformance, AStoreMayBeClosedInsideAnAnswer) {
    auto third = open("host-c");
    bool answered = false;
    std::vector<core::entry> batch;
    batch.push_back(entry(acquire_of("k", somebody())));
    third->execute(usual_lane, std::move(batch), [&](store::answers) {
        answered = true;
        third->close();
    });
    EXPECT_TRUE(run_until([&] { return answered; }));
    third.reset();
    EXPECT_EQ(ask(a(), acquire_of("k2", somebody())).what, verdict::granted);
}

TEST_P(Conformance, AttachedGrantsEndWithTheirProcess) {
    if (!caps().notices_death) {
        GTEST_SKIP() << caps().name << " cannot tell for certain that a process is gone";
    }
    const auto attached = acquire_of("attached", somebody());
    auto detached = acquire_of("detached", somebody());
    detached.attached = core::attachment::detached;
    const auto fence = ask(a(), attached).fences.last;
    if (caps().hands_over) {
        ask(a(), detached);
    }
    EXPECT_EQ(ask(b(), acquire_of("attached", somebody())).what, verdict::held);
    a_itself().reset();
    const auto next = ask(b(), acquire_of("attached", somebody()));
    EXPECT_EQ(next.what, verdict::granted) << "at once, not when the ttl is over";
    EXPECT_GT(next.fences.first, fence);
    if (!b().caps().hands_over) {
        return;
    }
    const auto held = ask(b(), acquire_of("detached", somebody()));
    ASSERT_EQ(held.what, verdict::held);
    ASSERT_EQ(held.holders.size(), 1U);
    EXPECT_EQ(held.holders.front().who.host, "host-a");
    EXPECT_EQ(ask(b(), renew_of("detached", detached.holder)).what, verdict::renewed);
}

TEST_P(Conformance, AnAdoptedLeaseLivesWithItsAdopter) {
    DIBS_NEEDS_HANDING_OVER();
    if (!caps().notices_death) {
        GTEST_SKIP() << caps().name << " cannot tell for certain that a process is gone";
    }
    const auto giver = take(a(), "k");
    const auto adopter = somebody();
    auto asked = renew_of("k", giver);
    asked.adopt = core::renew::change{adopter, core::attachment::attached};
    ASSERT_EQ(ask(b(), asked).what, verdict::renewed);
    a_itself().reset();
    EXPECT_EQ(ask(b(), renew_of("k", adopter)).what, verdict::renewed);
    const auto third = open("host-c");
    EXPECT_EQ(ask(*third, acquire_of("k", somebody())).what, verdict::held);
    b_itself().reset();
    EXPECT_EQ(ask(*third, acquire_of("k", somebody())).what, verdict::granted);
}

TEST_P(Conformance, TheMarkOfADeadProcessIsKept) {
    if (!caps().notices_death) {
        GTEST_SKIP() << caps().name << " cannot tell for certain that a process is gone";
    }
    auto asked = acquire_of("k", somebody());
    asked.mark = result_of("attempt 1", 0s, 1h);
    ask(a(), asked);
    a_itself().reset();
    const auto granted = ask(b(), acquire_of("k", somebody()));
    EXPECT_EQ(granted.what, verdict::granted);
    ASSERT_TRUE(granted.result);
    EXPECT_EQ(granted.result->value, "attempt 1");
    EXPECT_TRUE(granted.result->is_mark);
}

TEST_P(Conformance, ADeadHolderIsNotListed) {
    if (!caps().notices_death) {
        GTEST_SKIP() << caps().name << " cannot tell for certain that a process is gone";
    }
    take(a(), "k");
    a_itself().reset();
    EXPECT_TRUE(look(b(), "k").holders.empty());
}

TEST_P(Conformance, RecordsOutliveTheLastProcess) {
    if (!caps().survives_restart) {
        GTEST_SKIP() << caps().name << " forgets everything with the last process that uses it";
    }
    const auto finisher = take(a(), "result");
    ask(a(), finish_of("result", finisher, result_of("outcome", 1h, 1h)));
    ask(a(), block_of("hold", 1h, "maintenance"));
    const auto fenced = take(a(), "fence");
    const auto fence = fences_of(a(), "fence").last;
    ask(a(), release_of("fence", fenced));
    auto detached = acquire_of("detached", somebody());
    detached.attached = core::attachment::detached;
    const auto fences = ask(a(), detached).fences;
    a_itself().reset();
    b_itself().reset();

    a_itself() = open("host-a");
    EXPECT_EQ(ask(a(), acquire_of("result", somebody())).what, verdict::done);
    EXPECT_EQ(ask(a(), acquire_of("hold", somebody())).what, verdict::blocked);
    EXPECT_GT(ask(a(), acquire_of("fence", somebody())).fences.first, fence);
    if (caps().keeps_grants) {
        const auto renewed = ask(a(), renew_of("detached", detached.holder));
        EXPECT_EQ(renewed.what, verdict::renewed);
        EXPECT_EQ(renewed.fences, fences);
    }
}

TEST_P(Conformance, TellsWhatItIs) {
    EXPECT_FALSE(caps().name.empty());
    EXPECT_FALSE(caps().scope.empty());
    EXPECT_FALSE(caps().fence_source.empty());
    EXPECT_GT(caps().ttl_min, 0us);
    EXPECT_LE(caps().ttl_min, 1s);
    EXPECT_GE(caps().ttl_max, 24h);
    EXPECT_EQ(a().location(), b().location());
    // As the scheme, of which a store may have several: redis:, rediss:, redis+unix:.
    EXPECT_TRUE(a().location().starts_with(caps().name)) << a().location();
    EXPECT_NE(a().location().find(':'), std::string::npos) << a().location();
}

TEST_P(Conformance, NoWakeThatIsUnderWayArrivesAfterClose) {
    if (!caps().wakes) {
        GTEST_SKIP() << caps().name << " wakes nobody: its users poll";
    }
    auto third = open("host-c");
    const auto holder = take(*third, "k");
    const auto probe = watch(*third, "k");
    int before = -1;
    std::vector<core::entry> batch;
    batch.push_back(entry(release_of("k", holder)));
    third->execute(usual_lane, std::move(batch), [&](store::answers) {
        third->close();
        before = probe->wakes;
    });
    ASSERT_TRUE(run_until([&] { return before >= 0; }));
    settle({&a(), &b()});
    EXPECT_EQ(probe->wakes, before);
}

TEST_P(Conformance, ProcessesMayComeAndGo) {
    for (int round = 0; round < 20; ++round) {
        auto passing = open("host-" + std::to_string(round));
        take(*passing, "k");
        if (round % 2 == 0) {
            passing->close();
        }
        passing.reset();
        if (!caps().notices_death) {
            pass(usual_ttl);
        }
    }
    EXPECT_EQ(ask(b(), acquire_of("k", somebody())).what, verdict::granted);
}

}  // namespace dibs::conformance
