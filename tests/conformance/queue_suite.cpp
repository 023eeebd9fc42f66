// SPDX-License-Identifier: Apache-2.0
// The queue: first come, first served, among all processes.

#include "suite.hpp"

#include <utility>

namespace dibs::conformance {

#define DIBS_NEEDS_WAKES()                                              \
    if (!caps().wakes) {                                                \
        GTEST_SKIP() << caps().name << " wakes nobody: its users poll"; \
    }

#define DIBS_NEEDS_QUEUES()                               \
    if (!caps().queues) {                                 \
        GTEST_SKIP() << caps().name << " keeps no queue"; \
    }

TEST_P(Conformance, TheQueueIsServedInTheOrderOfArrival) {
    DIBS_NEEDS_QUEUES();
    auto holder = take(a(), "k");
    auto* held_through = &a();
    std::vector<core::holder_id> waiting;
    std::uint64_t number = 0;
    for (std::uint32_t position = 1; position <= 5; ++position) {
        waiting.push_back(somebody());
        auto& through = position % 2 == 0 ? a() : b();
        const auto given = ask(through, queued_acquire_of("k", waiting.back()));
        EXPECT_EQ(given.what, verdict::held);
        EXPECT_EQ(given.holders.size(), 1U);
        EXPECT_EQ(given.position, position);
        EXPECT_GT(given.ticket, number);
        number = given.ticket;
    }
    for (std::size_t head = 0; head < waiting.size(); ++head) {
        ASSERT_EQ(ask(*held_through, release_of("k", holder)).what, verdict::released);
        held_through = &b();
        for (auto at = waiting.size() - 1; at > head; --at) {
            const auto given = ask(b(), queued_acquire_of("k", waiting[at]));
            EXPECT_EQ(given.what, verdict::held) << at << " before " << head;
            EXPECT_TRUE(given.holders.empty());
            EXPECT_EQ(given.position, at - head + 1);
            EXPECT_GT(given.retry_after, 0s);
            EXPECT_LE(given.retry_after, 5s);
        }
        holder = waiting[head];
        const auto given = ask(b(), queued_acquire_of("k", holder));
        ASSERT_EQ(given.what, verdict::granted) << head;
        EXPECT_EQ(given.ticket, 0U);
    }
    EXPECT_EQ(look(a(), "k").queued, 0U);
}

TEST_P(Conformance, ABatchEntersInItsOrder) {
    DIBS_NEEDS_QUEUES();
    take(a(), "k");
    std::vector<core::entry> batch;
    for (int count = 0; count < 20; ++count) {
        batch.push_back(entry(queued_acquire_of("k", somebody())));
    }
    const auto given = ask_all(b(), std::move(batch));
    for (std::size_t at = 0; at < given.size(); ++at) {
        EXPECT_EQ(given[at].what, verdict::held);
        EXPECT_EQ(given[at].position, at + 1);
    }
}

TEST_P(Conformance, AFreeKeyNeedsNoQueue) {
    DIBS_NEEDS_QUEUES();
    const auto given = ask(a(), queued_acquire_of("k", somebody()));
    EXPECT_EQ(given.what, verdict::granted);
    EXPECT_EQ(given.ticket, 0U);
    EXPECT_EQ(look(b(), "k").queued, 0U);
}

TEST_P(Conformance, NobodyOvertakesTheQueueInARace) {
    DIBS_NEEDS_QUEUES();
    const auto holder = take(a(), "k");
    const auto waiting = somebody();
    ask(b(), queued_acquire_of("k", waiting));
    ask(a(), release_of("k", holder));
    for (auto* through : {&a(), &b()}) {
        const auto given = ask(*through, acquire_of("k", somebody()));
        EXPECT_EQ(given.what, verdict::held);
        EXPECT_TRUE(given.holders.empty());
        EXPECT_EQ(given.ticket, 0U) << "who races has no ticket";
    }
    EXPECT_EQ(look(a(), "k").queued, 1U);
    ASSERT_EQ(ask(b(), queued_acquire_of("k", waiting)).what, verdict::granted);
    ask(b(), release_of("k", waiting));
    EXPECT_EQ(ask(a(), acquire_of("k", somebody())).what, verdict::granted);
}

TEST_P(Conformance, ADeadHeadIsPassedOver) {
    DIBS_NEEDS_QUEUES();
    const auto holder = take(a(), "k");
    const auto dead = somebody();
    const auto alive = somebody();
    ask(a(), queued_acquire_of("k", dead, 2s));
    EXPECT_EQ(ask(b(), queued_acquire_of("k", alive, 5s)).position, 2U);
    ask(a(), release_of("k", holder));
    pass(1s);
    const auto before = ask(b(), queued_acquire_of("k", alive, 5s));
    EXPECT_EQ(before.what, verdict::held);
    EXPECT_GT(before.retry_after, 0s);
    EXPECT_LE(before.retry_after, 1s);
    EXPECT_EQ(ask(a(), acquire_of("k", somebody())).what, verdict::held);
    pass(before.retry_after + 2ms);
    EXPECT_EQ(ask(a(), acquire_of("k", somebody())).what, verdict::held) << "the next one's turn";
    EXPECT_EQ(ask(b(), queued_acquire_of("k", alive, 5s)).what, verdict::granted);
}

TEST_P(Conformance, AskingAgainKeepsATicketAlive) {
    DIBS_NEEDS_QUEUES();
    const auto holder = somebody();
    ask(a(), acquire_of("k", holder, 1h));
    const auto waiting = somebody();
    const auto first = ask(b(), queued_acquire_of("k", waiting, 2s));
    for (int beat = 0; beat < 5; ++beat) {
        pass(1500ms);
        const auto given = ask(b(), queued_acquire_of("k", waiting, 2s));
        ASSERT_EQ(given.ticket, first.ticket) << "beat " << beat;
        ASSERT_EQ(given.position, 1U);
    }
    ask(a(), release_of("k", holder));
    EXPECT_EQ(ask(a(), acquire_of("k", somebody())).what, verdict::held);
}

TEST_P(Conformance, WhoComesBackTooLateStandsAtTheTail) {
    DIBS_NEEDS_QUEUES();
    const auto holder = somebody();
    ask(a(), acquire_of("k", holder, 1h));
    const auto late = somebody();
    const auto next = somebody();
    ask(a(), queued_acquire_of("k", late, 2s));
    const auto behind = ask(b(), queued_acquire_of("k", next, 1h));
    pass(2s + 2ms);
    const auto again = ask(a(), queued_acquire_of("k", late, 2s));
    EXPECT_EQ(again.position, 2U);
    EXPECT_GT(again.ticket, behind.ticket);
    EXPECT_EQ(ask(b(), queued_acquire_of("k", next, 1h)).position, 1U);
}

// The last one that is alive leaves the queue, and nobody looks at the one behind it any more.
TEST_P(Conformance, WhoComesBackToAnEmptyQueueEntersItAnew) {
    DIBS_NEEDS_QUEUES();
    const auto holder = take(a(), "k");
    const auto head = somebody();
    const auto late = somebody();
    ask(b(), queued_acquire_of("k", head, 60s));
    ask(b(), queued_acquire_of("k", late, 100ms));
    pass(200ms);
    ask(a(), release_of("k", holder));
    ASSERT_EQ(ask(b(), queued_acquire_of("k", head, 60s)).what, verdict::granted);
    const auto given = ask(b(), queued_acquire_of("k", late));
    EXPECT_EQ(given.what, verdict::held);
    EXPECT_EQ(given.position, 1U);
    EXPECT_EQ(look(a(), "k").queued, 1U);
}

TEST_P(Conformance, AReleaseTakesATicketBack) {
    DIBS_NEEDS_QUEUES();
    const auto holder = take(a(), "k");
    const auto first = somebody();
    const auto second = somebody();
    ask(b(), queued_acquire_of("k", first));
    ask(b(), queued_acquire_of("k", second));
    EXPECT_EQ(ask(b(), release_of("k", first)).what, verdict::not_held);
    EXPECT_EQ(look(a(), "k").queued, 1U);
    EXPECT_EQ(ask(b(), queued_acquire_of("k", second)).position, 1U);
    // It touches nobody else's.
    EXPECT_EQ(ask(b(), release_of("k", first)).what, verdict::not_held);
    EXPECT_EQ(look(a(), "k").queued, 1U);
    ask(a(), release_of("k", holder));
    EXPECT_EQ(ask(b(), queued_acquire_of("k", second)).what, verdict::granted);
}

TEST_P(Conformance, AReleaseWakesTheHeadAlone) {
    DIBS_NEEDS_QUEUES();
    DIBS_NEEDS_WAKES();
    const auto third = open("host-c");
    const auto holder = take(a(), "k");
    // The order of watching is not the order of the queue.
    const auto late = watch(*third, "k");
    const auto early = watch(b(), "k");
    const auto head = somebody();
    ask(b(), queued_acquire_of("k", head));
    const auto tail = somebody();
    ask(*third, queued_acquire_of("k", tail));
    settle({&a(), &b(), third.get()});
    const auto others = late->wakes;
    const auto before = early->wakes;
    ask(a(), release_of("k", holder));
    EXPECT_TRUE(run_until([&] { return early->wakes > before; }));
    settle({&a(), &b(), third.get()});
    EXPECT_EQ(late->wakes, others) << "it is not its turn";
    ASSERT_EQ(ask(b(), queued_acquire_of("k", head)).what, verdict::granted);
    ask(b(), release_of("k", head));
    EXPECT_TRUE(run_until([&] { return late->wakes > others; }));
    b().unwatch(early->id);
    third->unwatch(late->id);
}

TEST_P(Conformance, ATicketOfAFreeKeyThatIsTakenBackWakesTheNext) {
    DIBS_NEEDS_QUEUES();
    DIBS_NEEDS_WAKES();
    const auto third = open("host-c");
    const auto holder = take(a(), "k");
    const auto probe = watch(*third, "k");
    const auto head = somebody();
    ask(b(), queued_acquire_of("k", head));
    ask(*third, queued_acquire_of("k", somebody()));
    ask(a(), release_of("k", holder));
    settle({&a(), &b(), third.get()});
    const auto before = probe->wakes;
    ask(b(), release_of("k", head));
    EXPECT_TRUE(run_until([&] { return probe->wakes > before; }));
    third->unwatch(probe->id);
}

TEST_P(Conformance, TheLastTicketTakenBackWakesWhoRaces) {
    DIBS_NEEDS_QUEUES();
    DIBS_NEEDS_WAKES();
    const auto holder = take(a(), "k");
    const auto probe = watch(b(), "k");
    const auto head = somebody();
    ask(a(), queued_acquire_of("k", head));
    ask(a(), release_of("k", holder));
    settle({&a(), &b()});
    const auto before = probe->wakes;
    ask(a(), release_of("k", head));
    EXPECT_TRUE(run_until([&] { return probe->wakes > before; }));
    EXPECT_EQ(ask(b(), acquire_of("k", somebody())).what, verdict::granted);
    b().unwatch(probe->id);
}

TEST_P(Conformance, WhoFindsAFreeKeyRemindsItsHead) {
    DIBS_NEEDS_QUEUES();
    DIBS_NEEDS_WAKES();
    const auto holder = take(a(), "k");
    const auto probe = watch(b(), "k");
    ask(b(), queued_acquire_of("k", somebody(), 1h));
    outlive();
    pass(2ms);  // nobody is woken by an expiry
    settle({&a(), &b()});
    const auto before = probe->wakes;
    EXPECT_EQ(ask(a(), acquire_of("k", holder)).what, verdict::held);
    EXPECT_TRUE(run_until([&] { return probe->wakes > before; }));
    b().unwatch(probe->id);
}

// Nobody may be behind that ticket any more, and then the two would go on for ever.
TEST_P(Conformance, NobodyIsRemindedByItsOwnProcess) {
    DIBS_NEEDS_QUEUES();
    DIBS_NEEDS_WAKES();
    take(a(), "k");
    const auto probe = watch(b(), "k");
    ask(b(), queued_acquire_of("k", somebody(), 1h));
    outlive();
    pass(2ms);
    settle({&a(), &b()});
    const auto before = probe->wakes;
    const auto second = ask(b(), queued_acquire_of("k", somebody(), 1h));
    EXPECT_EQ(second.what, verdict::held);
    EXPECT_EQ(second.position, 2U);
    settle({&a(), &b()});
    EXPECT_EQ(probe->wakes, before);
    b().unwatch(probe->id);
}

TEST_P(Conformance, ARevocationAndALiftedHoldWakeTheHead) {
    DIBS_NEEDS_QUEUES();
    DIBS_NEEDS_WAKES();
    take(a(), "revoked");
    const auto fence = fences_of(a(), "revoked").first;
    ask(a(), block_of("lifted", 1h, "maintenance"));
    const auto revoked = watch(b(), "revoked");
    const auto lifted = watch(b(), "lifted");
    ask(b(), queued_acquire_of("revoked", somebody()));
    const auto stood_off = ask(b(), queued_acquire_of("lifted", somebody()));
    EXPECT_EQ(stood_off.what, verdict::blocked);
    EXPECT_EQ(stood_off.position, 1U);
    const auto before = revoked->wakes;
    ask(a(), revoke_of("revoked", fence));
    EXPECT_TRUE(run_until([&] { return revoked->wakes > before; }));
    const auto held = lifted->wakes;
    ask(a(), block_of("lifted", 0s, ""));
    EXPECT_TRUE(run_until([&] { return lifted->wakes > held; }));
    EXPECT_EQ(ask(a(), acquire_of("lifted", somebody())).what, verdict::held);
    b().unwatch(revoked->id);
    b().unwatch(lifted->id);
}

TEST_P(Conformance, AFreshResultEndsATicket) {
    DIBS_NEEDS_QUEUES();
    const auto holder = take(a(), "k");
    const auto waiting = somebody();
    ask(b(), queued_acquire_of("k", waiting));
    ask(a(), finish_of("k", holder, result_of("outcome", 1h, 1h)));
    EXPECT_EQ(ask(b(), queued_acquire_of("k", waiting)).what, verdict::done);
    EXPECT_EQ(look(a(), "k").queued, 0U);
}

TEST_P(Conformance, WhatComesTooLateEntersNothing) {
    DIBS_NEEDS_QUEUES();
    const auto holder = take(a(), "k");
    const auto now = ask(a(), renew_of("k", holder)).now;
    auto asked = queued_acquire_of("k", somebody());
    asked.not_after = now.lease;
    pass(1ms);
    EXPECT_EQ(ask(b(), asked).what, verdict::too_late);
    EXPECT_EQ(look(a(), "k").queued, 0U);
}

TEST_P(Conformance, WhoHoldsTheKeyMayAskAgainBesideAQueue) {
    DIBS_NEEDS_QUEUES();
    const auto holder = somebody();
    const auto first = ask(a(), queued_acquire_of("k", holder));
    ask(b(), queued_acquire_of("k", somebody()));
    const auto again = ask(a(), queued_acquire_of("k", holder));
    EXPECT_EQ(again.what, verdict::granted);
    EXPECT_EQ(again.fences, first.fences);
    EXPECT_TRUE(ask(a(), renew_of("k", holder)).waiters);
    EXPECT_TRUE(ask(a(), release_of("k", holder)).waiters);
}

TEST_P(Conformance, AListingShowsTheQueue) {
    DIBS_NEEDS_QUEUES();
    take(a(), "k");
    ask(b(), queued_acquire_of("k", somebody()));
    pass(1s);
    ask(a(), queued_acquire_of("k", somebody()));
    const auto shown = look(a(), "k");
    ASSERT_EQ(shown.queued, 2U);
    ASSERT_EQ(shown.queue.size(), 2U);
    EXPECT_EQ(shown.queue[0].who.host, "host-b");
    EXPECT_EQ(shown.queue[0].who.command, "conformance --test");
    EXPECT_EQ(shown.queue[0].waiting_for, 1s);
    EXPECT_FALSE(shown.queue[0].self);
    EXPECT_EQ(shown.queue[1].who.host, "host-a");
    EXPECT_TRUE(shown.queue[1].self);
    pass(4s + 2ms);  // the first one's time is over
    const auto later = look(b(), "k");
    ASSERT_EQ(later.queued, 1U);
    EXPECT_EQ(later.queue.at(0).who.host, "host-a");
}

TEST_P(Conformance, TheQueueOfAProcessThatIsGoneIsPassedOver) {
    DIBS_NEEDS_QUEUES();
    if (!caps().notices_death) {
        GTEST_SKIP() << caps().name << " does not notice the death of a process";
    }
    const auto third = open("host-c");
    const auto holder = take(a(), "k");
    const auto probe = watch(b(), "k");
    ask(*third, queued_acquire_of("k", somebody(), 1h));
    const auto next = somebody();
    ask(b(), queued_acquire_of("k", next, 1h));
    ask(a(), release_of("k", holder));
    third->close();
    EXPECT_EQ(ask(b(), queued_acquire_of("k", next, 1h)).what, verdict::granted);
    b().unwatch(probe->id);
}

TEST_P(Conformance, WhoWouldFitWaitsBehindAHeadThatDoesNot) {
    DIBS_NEEDS_QUEUES();
    if (!caps().shared) {
        GTEST_SKIP() << caps().name << " has no shared grants";
    }
    const auto with_ticket = [](core::acquire asked) {
        asked.queue = 1h;
        return asked;
    };
    constexpr auto many = core::share::unlimited;
    const auto reader = somebody();
    ask(a(), shared_acquire_of("k", reader, 1, many));
    const auto writer = somebody();
    EXPECT_EQ(ask(b(), with_ticket(shared_acquire_of("k", writer, many, many))).what,
              verdict::held);
    const auto second = somebody();
    EXPECT_EQ(ask(a(), with_ticket(shared_acquire_of("k", second, 1, many))).position, 2U);
    ask(a(), release_of("k", reader));
    EXPECT_EQ(ask(b(), with_ticket(shared_acquire_of("k", writer, many, many))).what,
              verdict::granted);
    ask(b(), release_of("k", writer));
    EXPECT_EQ(ask(a(), with_ticket(shared_acquire_of("k", second, 1, many))).what,
              verdict::granted);
}

TEST_P(Conformance, AQueueOfManyIsServedInOrder) {
    DIBS_NEEDS_QUEUES();
    auto holder = take(a(), "k");
    auto* held_through = &a();
    std::vector<core::holder_id> waiting;
    for (int batches = 0; batches < 3; ++batches) {
        std::vector<core::entry> batch;
        for (int count = 0; count < 100; ++count) {
            waiting.push_back(somebody());
            batch.push_back(entry(queued_acquire_of("k", waiting.back(), 1h)));
        }
        ask_all(batches % 2 == 0 ? a() : b(), std::move(batch));
    }
    for (const auto& next : waiting) {
        ask(*held_through, release_of("k", holder));
        held_through = &b();
        ASSERT_EQ(ask(b(), queued_acquire_of("k", next, 1h)).what, verdict::granted);
        holder = next;
    }
}

}  // namespace dibs::conformance
