// SPDX-License-Identifier: Apache-2.0
// Watching: whoever waits is woken. Spurious wakes are allowed and never counted as faults.

#include "suite.hpp"

#include <utility>

namespace dibs::conformance {

#define DIBS_NEEDS_WAKES()                                              \
    if (!caps().wakes) {                                                \
        GTEST_SKIP() << caps().name << " wakes nobody: its users poll"; \
    }

#define DIBS_NEEDS_WAKING_OF_ALL()                                            \
    if (!caps().wakes_all) {                                                  \
        GTEST_SKIP() << caps().name << " wakes one process for each release"; \
    }

TEST_P(Conformance, AReleaseWakesAWatcherOfAnotherProcess) {
    DIBS_NEEDS_WAKES();
    const auto holder = take(a(), "k");
    const auto probe = watch(b(), "k");
    ASSERT_EQ(ask(b(), acquire_of("k", somebody())).what, verdict::held);
    const auto before = probe->wakes;
    ask(a(), release_of("k", holder));
    EXPECT_TRUE(run_until([&] { return probe->wakes > before; }));
    EXPECT_EQ(probe->ready, 1);
    EXPECT_EQ(ask(b(), acquire_of("k", somebody())).what, verdict::granted);
    b().unwatch(probe->id);
}

TEST_P(Conformance, AReleaseWakesAWatcherOfTheSameProcess) {
    DIBS_NEEDS_WAKES();
    const auto holder = take(a(), "k");
    const auto probe = watch(a(), "k");
    ask(a(), release_of("k", holder));
    EXPECT_TRUE(run_until([&] { return probe->wakes > 0; }));
    a().unwatch(probe->id);
}

TEST_P(Conformance, WhereAllAreWokenAHeldKeyTellsHowManyThatIs) {
    DIBS_NEEDS_WAKING_OF_ALL();
    (void)take(a(), "k");
    EXPECT_EQ(ask(b(), acquire_of("k", somebody())).watchers, 0U);
    const auto one = watch(a(), "k");
    const auto two = watch(b(), "k");
    EXPECT_EQ(ask(b(), acquire_of("k", somebody())).watchers, 2U);
    a().unwatch(one->id);
    settle({&a()});
    EXPECT_EQ(ask(b(), acquire_of("k", somebody())).watchers, 1U);
    b().unwatch(two->id);
}

TEST_P(Conformance, AReleaseInABatchWakesToo) {
    DIBS_NEEDS_WAKES();
    const auto holder = take(a(), "k");
    const auto probe = watch(b(), "k");
    std::vector<core::entry> batch;
    batch.push_back(entry(acquire_of("other", somebody())));
    batch.push_back(entry(release_of("k", holder)));
    ask_all(a(), std::move(batch));
    EXPECT_TRUE(run_until([&] { return probe->wakes > 0; }));
    b().unwatch(probe->id);
}

TEST_P(Conformance, AResultARevocationAndALiftedHoldWake) {
    DIBS_NEEDS_WAKES();
    const auto finishing = take(a(), "finished");
    take(a(), "revoked");
    const auto fence = fences_of(a(), "revoked").first;
    ask(a(), block_of("lifted", 1h, "maintenance"));
    const auto finished = watch(b(), "finished");
    const auto revoked = watch(b(), "revoked");
    const auto lifted = watch(b(), "lifted");
    ask(a(), finish_of("finished", finishing, result_of("outcome", 1h, 1h)));
    EXPECT_TRUE(run_until([&] { return finished->wakes > 0; }));
    ask(a(), revoke_of("revoked", fence));
    EXPECT_TRUE(run_until([&] { return revoked->wakes > 0; }));
    ask(a(), block_of("lifted", 0s, ""));
    EXPECT_TRUE(run_until([&] { return lifted->wakes > 0; }));
    for (const auto* probe : {finished.get(), revoked.get(), lifted.get()}) {
        b().unwatch(probe->id);
    }
}

TEST_P(Conformance, NoWakeIsLostBetweenRegistrationAndRelease) {
    DIBS_NEEDS_WAKES();
    for (int round = 0; round < 100; ++round) {
        const auto holder = take(a(), "k");
        const auto probe = watch(b(), "k");
        bool released = false;
        std::vector<core::entry> batch;
        batch.push_back(entry(release_of("k", holder)));
        a().execute(usual_lane, std::move(batch), [&](store::answers) { released = true; });
        ASSERT_TRUE(run_until([&] { return released && probe->wakes > 0; })) << "round " << round;
        b().unwatch(probe->id);
    }
}

TEST_P(Conformance, AWatcherIsWokenAgainAtTheNextRelease) {
    DIBS_NEEDS_WAKES();
    const auto probe = watch(b(), "k");
    for (int round = 0; round < 10; ++round) {
        const auto holder = take(a(), "k");
        settle({&a(), &b()});
        const auto before = probe->wakes;
        ask(a(), release_of("k", holder));
        ASSERT_TRUE(run_until([&] { return probe->wakes > before; })) << "round " << round;
    }
    b().unwatch(probe->id);
}

TEST_P(Conformance, AWatcherThatStopsPassesTheWakeOn) {
    DIBS_NEEDS_WAKES();
    const auto third = open("host-c");
    const auto holder = take(a(), "k");
    const auto first = watch(b(), "k");
    const auto second = watch(*third, "k");
    ask(a(), release_of("k", holder));
    ASSERT_TRUE(run_until([&] { return first->wakes + second->wakes > 0; }));
    // Whoever was woken goes away without the key; then the other one must hear of it.
    const bool first_was_it = first->wakes > 0;
    auto& left = first_was_it ? *second : *first;
    (first_was_it ? b() : *third).unwatch(first_was_it ? first->id : second->id);
    EXPECT_TRUE(run_until([&] { return left.wakes > 0; }));
    (first_was_it ? *third : b()).unwatch(left.id);
}

TEST_P(Conformance, AProcessThatClosesPassesTheWakeOn) {
    DIBS_NEEDS_WAKES();
    auto third = open("host-c");
    const auto holder = take(a(), "k");
    const auto first = watch(*third, "k");
    const auto second = watch(b(), "k");
    ask(a(), release_of("k", holder));
    ASSERT_TRUE(run_until([&] { return first->wakes + second->wakes > 0; }));
    third->close();
    EXPECT_TRUE(run_until([&] { return second->wakes > 0; }));
    b().unwatch(second->id);
}

TEST_P(Conformance, WhoIsWokenIsToldWhetherTheReleaseWasOfItsOwnProcess) {
    DIBS_NEEDS_WAKING_OF_ALL();
    const auto own = watch(a(), "k");
    const auto other = watch(b(), "k");
    const auto third = watch(b(), "k");
    ask(a(), release_of("k", take(a(), "k")));
    ASSERT_TRUE(run_until([&] { return own->wakes > 0 && other->wakes > 0 && third->wakes > 0; }));
    EXPECT_EQ(own->last_by, store::wake_by::own_process);
    EXPECT_EQ(other->last_by, store::wake_by::other_process);
    EXPECT_EQ(third->last_by, store::wake_by::other_process);
    // A batch of releases, and one that leaves a result.
    std::vector<core::entry> batch;
    batch.push_back(entry(release_of("k", take(b(), "k"))));
    batch.push_back(entry(release_of("l", take(b(), "l"))));
    const auto before = own->wakes;
    const auto others_before = other->wakes;
    ask_all(b(), std::move(batch));
    ASSERT_TRUE(run_until([&] { return own->wakes > before && other->wakes > others_before; }));
    EXPECT_EQ(own->last_by, store::wake_by::other_process);
    EXPECT_EQ(other->last_by, store::wake_by::own_process);
    const auto again = own->wakes;
    ask(a(), finish_of("k", take(a(), "k"), result_of("outcome", 1h, 1h)));
    ASSERT_TRUE(run_until([&] { return own->wakes > again; }));
    EXPECT_EQ(own->last_by, store::wake_by::own_process);
    a().unwatch(own->id);
    b().unwatch(other->id);
    b().unwatch(third->id);
}

TEST_P(Conformance, WhoWatchesItselfIsNoOtherThatWaits) {
    DIBS_NEEDS_WAKING_OF_ALL();
    const auto own = watch(a(), "k");
    EXPECT_FALSE(ask(a(), release_of("k", take(a(), "k"))).waiters);
    const auto other = watch(b(), "k");
    EXPECT_TRUE(ask(a(), release_of("k", take(a(), "k"))).waiters);
    EXPECT_TRUE(ask(b(), release_of("k", take(b(), "k"))).waiters);
    const auto holder = take(a(), "k");
    EXPECT_TRUE(ask(a(), renew_of("k", holder)).waiters);
    a().unwatch(own->id);
    settle({&a()});
    b().unwatch(other->id);
    settle({&b()});
    const auto once_more = watch(a(), "k");  // what was left is left by now
    EXPECT_FALSE(ask(a(), release_of("k", holder)).waiters);
    a().unwatch(once_more->id);
}

TEST_P(Conformance, NobodyIsWokenAfterUnwatch) {
    DIBS_NEEDS_WAKES();
    const auto holder = take(a(), "k");
    const auto probe = watch(b(), "k");
    b().unwatch(probe->id);
    const auto before = probe->wakes;
    ask(a(), release_of("k", holder));
    settle({&a(), &b()});
    EXPECT_EQ(probe->wakes, before);
    b().unwatch(probe->id);
    b().unwatch(0);
}

TEST_P(Conformance, AWatcherMayStopWatchingInsideItsWake) {
    DIBS_NEEDS_WAKES();
    const auto holder = take(a(), "k");
    store::watch_id id = 0;
    int wakes = 0;
    bool ready = false;
    id = b().watch(
        "k",
        [&](std::error_code) { ready = true; },
        [&](auto) {
            ++wakes;
            b().unwatch(id);
        });
    ASSERT_TRUE(run_until([&] { return ready; }));
    ask(a(), release_of("k", holder));
    ASSERT_TRUE(run_until([&] { return wakes > 0; }));
    const auto next = take(a(), "k");
    ask(a(), release_of("k", next));
    settle({&a(), &b()});
    EXPECT_EQ(wakes, 1);
}

TEST_P(Conformance, SeveralWatchersOfOneProcessAreApart) {
    DIBS_NEEDS_WAKES();
    const auto one = take(a(), "one");
    const auto two = take(a(), "two");
    const auto first = watch(b(), "one");
    const auto second = watch(b(), "two");
    ask(a(), release_of("one", one));
    EXPECT_TRUE(run_until([&] { return first->wakes > 0; }));
    b().unwatch(first->id);
    const auto before = second->wakes;
    ask(a(), release_of("two", two));
    EXPECT_TRUE(run_until([&] { return second->wakes > before; }));
    b().unwatch(second->id);
}

TEST_P(Conformance, ReadersThatWaitGetInOneAfterTheOther) {
    DIBS_NEEDS_WAKES();
    if (!caps().shared) {
        GTEST_SKIP() << caps().name << " has no shared grants";
    }
    // A writer leaves; the readers that waited hear of it one by one, each when the one before is
    // in.
    const auto writer = somebody();
    ask(a(), shared_acquire_of("k", writer, core::share::unlimited, core::share::unlimited));
    const auto third = open("host-c");
    const auto first = watch(b(), "k");
    const auto second = watch(*third, "k");
    ask(a(), release_of("k", writer));
    ASSERT_TRUE(run_until([&] { return first->wakes + second->wakes > 0; }));
    const bool first_was_it = first->wakes > 0;
    auto& in = first_was_it ? b() : *third;
    ask(in, shared_acquire_of("k", somebody(), 1, core::share::unlimited));
    in.unwatch(first_was_it ? first->id : second->id);
    const auto& left = first_was_it ? *second : *first;
    EXPECT_TRUE(run_until([&] { return left.wakes > 0; }));
    (first_was_it ? *third : b()).unwatch(left.id);
}

TEST_P(Conformance, AWakeThatFoundTheKeyHeldIsNotTheLast) {
    DIBS_NEEDS_WAKES();
    const auto holder = take(a(), "k");
    ask(a(), block_of("k", 1h, "maintenance"));
    const auto probe = watch(b(), "k");
    ask(a(), block_of("k", 0s, ""));
    settle({&a(), &b()});
    ASSERT_EQ(ask(b(), acquire_of("k", somebody())).what, verdict::held);
    const auto before = probe->wakes;
    ask(a(), release_of("k", holder));
    EXPECT_TRUE(run_until([&] { return probe->wakes > before; }));
    b().unwatch(probe->id);
}

TEST_P(Conformance, NoWakeThatIsUnderWayArrivesAfterUnwatch) {
    DIBS_NEEDS_WAKES();
    const auto holder = take(a(), "k");
    const auto probe = watch(a(), "k");
    int before = -1;
    std::vector<core::entry> batch;
    batch.push_back(entry(release_of("k", holder)));
    a().execute(usual_lane, std::move(batch), [&](store::answers) {
        a().unwatch(probe->id);
        before = probe->wakes;
    });
    ASSERT_TRUE(run_until([&] { return before >= 0; }));
    settle({&a(), &b()});
    EXPECT_EQ(probe->wakes, before);
}

}  // namespace dibs::conformance
