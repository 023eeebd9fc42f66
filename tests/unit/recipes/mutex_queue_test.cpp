// SPDX-License-Identifier: Apache-2.0
// Waiting in the order of arrival, on virtual time: who gets the key next is decided by the store's
// queue, whatever is lost, late or dead on the way.

#include "mutex_process.hpp"
#include "recipes/mutex_parts.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace dibs::recipes {

namespace {

mutex_terms in_order(nanoseconds wait = 10min, nanoseconds ttl = 6s) {
    auto terms = terms_of(wait, ttl);
    terms.queue = true;
    return terms;
}

class MutexQueue : public Mutex {
  protected:
    process third{world, space};

    core::record_info record() {
        core::record_info found;
        bool told = false;
        here.line.list("k", "", 1, [&](core::page page) {
            told = true;
            if (!page.records.empty()) {
                found = std::move(page.records[0]);
            }
        });
        world.run_until([&] { return told; }, 1s);
        return found;
    }

    bool granted(const process::ended_ptr& call, nanoseconds within) {
        return world.run_until([&] { return call->lease() != nullptr; }, within);
    }
};

}  // namespace

TEST_F(MutexQueue, CallersOfAllProcessesAreServedInTheOrderInWhichTheyCame) {
    auto lease = here.take();
    std::vector<process*> who;
    std::vector<process::ended_ptr> calls;
    for (int number = 0; number < 12; ++number) {
        who.push_back(number % 3 == 0 ? &here : number % 3 == 1 ? &there : &third);
        calls.push_back(who.back()->acquire(in_order()));
        world.advance(1ms);
    }
    ASSERT_EQ(record().queued, 12U);
    auto* holding = &here;
    for (std::size_t next = 0; next < calls.size(); ++next) {
        holding->release(lease);
        ASSERT_TRUE(granted(calls[next], 10ms)) << next;
        for (auto behind = next + 1; behind < calls.size(); ++behind) {
            ASSERT_FALSE(calls[behind]->outcome) << behind << " before " << next;
        }
        EXPECT_GT(calls[next]->lease()->fence(), lease->fence());
        lease = calls[next]->lease();
        holding = who[next];
    }
    EXPECT_EQ(here.keys.counters().handed_on, 0U) << "a lease is never handed on in a queue";
    holding->release(lease);
    world.advance(10s);
    EXPECT_EQ(record().queued, 0U);
    for (auto* one : {&here, &there, &third}) {
        EXPECT_EQ(one->keys.known_keys(), 0U);
        EXPECT_EQ(one->doubts.open(), 0U);
    }
}

TEST_F(MutexQueue, WhereTheStoreWakesNobodyTheNextOneFindsOutSoonAllTheSame) {
    for (auto* one : {&here, &there, &third}) {
        one->line.wakeless = true;
    }
    auto lease = here.take();
    std::vector<process*> who;
    std::vector<process::ended_ptr> calls;
    for (int number = 0; number < 5; ++number) {
        who.push_back(number % 3 == 0 ? &there : number % 3 == 1 ? &here : &third);
        calls.push_back(who.back()->acquire(in_order()));
        world.advance(1ms);
    }
    auto* holding = &here;
    for (std::size_t next = 0; next < calls.size(); ++next) {
        holding->release(lease);
        ASSERT_TRUE(granted(calls[next], 1s)) << next;
        lease = calls[next]->lease();
        holding = who[next];
    }
    holding->release(lease);
}

TEST_F(MutexQueue, AReleaseSendsNobodyButTheHeadToTheStore) {
    const auto lease = here.take();
    const auto head = there.acquire(in_order());
    world.advance(10ms);
    const auto tail = third.acquire(in_order());
    world.advance(100ms);
    const auto before = third.line.count<core::acquire>();
    here.release(lease);
    ASSERT_TRUE(granted(head, 10ms));
    world.advance(100ms);
    EXPECT_EQ(third.line.count<core::acquire>(), before);
    EXPECT_FALSE(tail->outcome);
}

TEST_F(MutexQueue, WhoTriesOnceDoesNotOvertake) {
    const auto lease = here.take();
    const auto waiting = there.acquire(in_order());
    world.advance(10ms);
    there.line.plan = [](std::size_t, const auto&) { return fault::lose_request; };
    here.release(lease);
    world.advance(10ms);  // the head cannot come just now
    for (auto* one : {&here, &third}) {
        const auto once = one->acquire();
        world.advance(50ms);
        ASSERT_TRUE(once->busy());
        EXPECT_TRUE(once->outcome->queue_first);
        EXPECT_TRUE(once->outcome->holders.empty());
    }
    there.line.plan = nullptr;
    EXPECT_TRUE(granted(waiting, 5s));
}

TEST_F(MutexQueue, WhoRacesGetsTheKeyWhenTheQueueIsEmpty) {
    const auto lease = here.take();
    const auto racing = third.acquire(terms_of(10min));
    world.advance(10ms);
    const auto queued = there.acquire(in_order());
    world.advance(10ms);
    here.release(lease);
    ASSERT_TRUE(granted(queued, 10ms)) << "though it came later";
    EXPECT_FALSE(racing->outcome);
    there.release(queued->lease());
    EXPECT_TRUE(granted(racing, 10ms));
}

TEST_F(MutexQueue, ALeaseIsNotHandedOnPastTheQueueOfItsOwnProcess) {
    const auto first = here.acquire(terms_of(10min));
    const auto racing = here.acquire(terms_of(10min));
    world.run_ready();
    ASSERT_TRUE(first->lease());
    const auto queued = here.acquire(in_order());
    world.advance(10ms);
    here.release(first->lease());
    ASSERT_TRUE(granted(queued, 50ms));
    EXPECT_FALSE(racing->outcome);
    here.release(queued->lease());
    EXPECT_TRUE(granted(racing, 50ms));
}

TEST_F(MutexQueue, ALostWakeUpCostsOneBeat) {
    const auto lease = here.take(terms_of(0s, 1min));
    const auto waiting = there.acquire(in_order());
    world.advance(10ms);
    there.line.deaf = true;
    here.release(lease);
    EXPECT_FALSE(granted(waiting, 1ms));
    EXPECT_TRUE(granted(waiting, beat_every + 10ms));
}

TEST_F(MutexQueue, TheBeatKeepsEveryTicketAliveInOneBatch) {
    const auto lease = here.take();
    std::vector<process::ended_ptr> calls;
    for (int number = 0; number < 100; ++number) {
        calls.push_back(there.acquire(in_order()));
    }
    world.advance(100ms);
    const auto batches = there.line.seen.size();
    world.advance(1min);
    EXPECT_EQ(record().queued, 100U);
    // The head looks for itself at the holder's expiry besides.
    EXPECT_LE(there.line.seen.size() - batches, 2 * (1min / beat_every) + 5);
    here.release(lease);
    ASSERT_TRUE(granted(calls[0], 10ms));
}

TEST_F(MutexQueue, ADeadHeadIsPassedOverWhenItsTimeIsOver) {
    const auto lease = here.take();
    const auto dead = there.acquire(in_order());
    world.advance(10ms);
    const auto next = third.acquire(in_order());
    world.advance(10ms);
    there.line.plan = [](std::size_t, const auto&) { return fault::lose_request; };
    here.release(lease);
    EXPECT_FALSE(granted(next, ticket_time / 2));
    EXPECT_TRUE(granted(next, ticket_time));
    EXPECT_FALSE(dead->lease());
    there.line.plan = nullptr;
}

TEST_F(MutexQueue, TheHeadComesWhenTheHolderExpires) {
    auto terms = terms_of(0s, 2s);
    terms.lease.renew_every = 0s;
    const auto lease = here.take(terms);
    const auto head = there.acquire(in_order());
    const auto begun = world.now();
    ASSERT_TRUE(granted(head, 10s));
    EXPECT_LE(head->when - begun, 2s + 20ms);
}

TEST_F(MutexQueue, WhoGivesUpTakesItsTicketBackAtOnce) {
    const auto lease = here.take();
    const auto patient = third.acquire(in_order());
    const auto short_of_time = there.acquire(in_order(1s));
    const auto cancelled = there.acquire(in_order());
    world.advance(500ms);
    ASSERT_EQ(record().queued, 3U);
    there.keys.cancel(cancelled->call.lock());
    world.advance(10ms);
    EXPECT_EQ(record().queued, 2U);
    world.advance(500ms);
    EXPECT_TRUE(short_of_time->busy());
    EXPECT_EQ(record().queued, 1U);
    third.keys.close();
    world.advance(10ms);
    EXPECT_EQ(record().queued, 0U);
    EXPECT_TRUE(patient->outcome);
}

TEST_F(MutexQueue, TheHeadOfAFreeKeyThatGivesUpLetsTheNextOneIn) {
    const auto lease = here.take();
    const auto head = there.acquire(in_order());
    world.advance(10ms);
    const auto next = third.acquire(in_order());
    world.advance(10ms);
    // It is woken, and its try is slow: it gives up before the answer comes.
    there.line.plan = [](std::size_t, const faulty_store::seen_batch& batch) {
        return std::holds_alternative<core::acquire>(batch.entries[0].what) ? fault::lose_request
                                                                            : fault::none;
    };
    here.release(lease);
    world.advance(10ms);
    ASSERT_FALSE(next->outcome);
    there.keys.cancel(head->call.lock());
    EXPECT_TRUE(granted(next, 1500ms)) << "once the try that is lost is given up";
    there.line.plan = nullptr;
}

TEST_F(MutexQueue, ATicketThatComesLateIsTakenBack) {
    const auto lease = here.take();
    there.line.delay = 800ms;
    there.line.plan = [](std::size_t number, const auto&) {
        return number == 1 ? fault::delay_request : fault::none;
    };
    const auto call = there.acquire(in_order());
    world.advance(10ms);
    there.keys.cancel(call->call.lock());
    world.advance(3s);
    EXPECT_EQ(record().queued, 0U);
    EXPECT_EQ(there.doubts.open(), 0U);
}

TEST_F(MutexQueue, AWakeUpThatOvertakesTheAnswerIsNotMissed) {
    const auto lease = here.take(terms_of(0s, 1min));
    there.line.delay = 300ms;
    const auto watcher = there.acquire(in_order());
    world.advance(10ms);
    const auto before = there.line.seen.size();
    there.line.plan = [&](std::size_t number, const auto&) {
        return number == before + 1 ? fault::delay_answer : fault::none;
    };
    world.advance(
        beat_every);  // its beat is under way, answered before the release, heard after it
    const auto begun = world.now();
    here.release(lease);
    ASSERT_TRUE(granted(watcher, 10s));
    EXPECT_LE(watcher->when - begun, 400ms);
}

TEST_F(MutexQueue, FaultsAtAnyOperationKeepTheOrderAndLeaveNothing) {
    for (const auto kind : {fault::refuse,
                            fault::lose_request,
                            fault::lose_answer,
                            fault::doubt,
                            fault::delay_answer,
                            fault::repeat}) {
        for (std::size_t at = 1; at <= 6; ++at) {
            const auto lease = here.take();
            ASSERT_TRUE(lease);
            const auto base = there.line.seen.size();
            there.line.delay = 400ms;
            there.line.plan = [&](std::size_t number, const auto&) {
                return number == base + at ? kind : fault::none;
            };
            const auto first = there.acquire(in_order());
            world.advance(3s);  // whatever befell it, it stands in the queue by now
            const auto second = third.acquire(in_order());
            world.advance(10ms);
            ASSERT_EQ(record().queued, 2U) << static_cast<int>(kind) << " at " << at;
            here.release(lease);
            ASSERT_TRUE(granted(first, 10s)) << static_cast<int>(kind) << " at " << at;
            EXPECT_FALSE(second->outcome);
            there.release(first->lease());
            ASSERT_TRUE(granted(second, 10s)) << static_cast<int>(kind) << " at " << at;
            third.release(second->lease());
            there.line.plan = nullptr;
            world.advance(20s);
            ASSERT_EQ(record().queued, 0U);
            ASSERT_TRUE(there.holders().empty());
            ASSERT_EQ(there.doubts.open(), 0U);
        }
    }
}

}  // namespace dibs::recipes
