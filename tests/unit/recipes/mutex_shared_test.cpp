// SPDX-License-Identifier: Apache-2.0
// Leases that go with others, on virtual time: readers beside a writer, and the permits of a
// semaphore. No share is ever passed on as if it were the whole key, no reader waits for another one,
// and nobody is forgotten in the line.

#include "mutex_process.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace dibs::recipes {

namespace {

mutex_terms reader(nanoseconds wait = 0s) {
    auto terms = terms_of(wait);
    terms.part = {1, core::share::unlimited};
    return terms;
}

mutex_terms some_permits(std::uint32_t weight, std::uint32_t capacity, nanoseconds wait = 0s) {
    auto terms = terms_of(wait);
    terms.part = {weight, capacity};
    return terms;
}

mutex_terms in_order(mutex_terms terms) {
    terms.wait = 10min;
    terms.queue = true;
    return terms;
}

class MutexShared : public Mutex {
  protected:
    bool granted(const process::ended_ptr& call, nanoseconds within = 100ms) {
        return world.run_until([&] { return call->lease() != nullptr; }, within);
    }

    static int granted_of(const std::vector<process::ended_ptr>& calls) {
        int number = 0;
        for (const auto& call : calls) {
            number += call->lease() ? 1 : 0;
        }
        return number;
    }
};

}  // namespace

TEST_F(MutexShared, ReadersOfOneProcessHoldTheKeyAtOnceWhetherTheyWouldWaitOrNot) {
    std::vector<process::ended_ptr> readers;
    for (int number = 0; number < 20; ++number) {
        readers.push_back(here.acquire(reader(number % 2 == 0 ? 10min : 0s)));
    }
    world.run_ready();
    EXPECT_EQ(granted_of(readers), 20);
    EXPECT_EQ(here.holders().size(), 20U);
    const auto writer = there.acquire();
    world.run_ready();
    ASSERT_TRUE(writer->busy());
    EXPECT_EQ(writer->outcome->holders.size(), 20U);
}

TEST_F(MutexShared, AReaderIsNotHandedTheLeaseOfAWriter) {
    auto writer = here.acquire(terms_of(10min));
    const auto second =
        here.acquire(terms_of(10min));  // so the first grant brings a block of fences
    const auto waiting = here.acquire(reader(10min));
    world.run_ready();
    ASSERT_TRUE(writer->lease());
    here.release(writer->lease());
    world.run_ready();
    ASSERT_TRUE(second->lease());
    EXPECT_EQ(here.keys.counters().handed_on, 1U) << "from writer to writer";
    const auto last_exclusive = here.holders().front().fences.last;
    here.release(second->lease());
    ASSERT_TRUE(granted(waiting));
    EXPECT_EQ(here.keys.counters().handed_on, 1U);
    EXPECT_GT(waiting->lease()->fence(), last_exclusive);
    EXPECT_NE(waiting->lease()->holder, second->lease()->holder);
    EXPECT_TRUE(there.take(reader())) << "the store knows it as a reader";
}

TEST_F(MutexShared, AReaderIsNotHandedOnToAWriterEither) {
    const auto first = here.take(reader());
    const auto second = there.take(reader());
    const auto writer = here.acquire(terms_of(10min));
    world.run_ready();
    here.release(first);
    world.run_ready();
    EXPECT_FALSE(writer->lease()) << "another process reads";
    there.release(second);
    ASSERT_TRUE(granted(writer)) << "by the wake-up";
    EXPECT_EQ(here.keys.counters().handed_on, 0U);
    EXPECT_EQ(here.holders().size(), 1U);
}

TEST_F(MutexShared, AWriterGetsTheKeyWhenTheLastReaderOfItsOwnProcessHasGone) {
    const auto first = here.take(reader());
    const auto second = here.take(reader());
    const auto writer = here.acquire(terms_of(10min));
    world.run_ready();
    EXPECT_FALSE(writer->lease());
    here.release(first);
    world.run_ready();
    EXPECT_FALSE(writer->lease());
    here.release(second);
    EXPECT_TRUE(granted(writer));
}

TEST_F(MutexShared, PermitsNeverExceedTheCapacityAndNobodyWaitsInVain) {
    std::vector<process::ended_ptr> calls;
    for (int number = 0; number < 30; ++number) {
        auto& by = number % 2 == 0 ? here : there;
        calls.push_back(by.acquire(some_permits(number % 3 == 0 ? 2 : 1, 4, 10min)));
    }
    std::size_t served = 0;
    while (served < calls.size()) {
        ASSERT_TRUE(world.run_until(
            [&] {
                return std::any_of(
                    calls.begin(), calls.end(), [](const auto& one) { return one->lease(); });
            },
            30s))
            << served << " were served";
        std::uint32_t taken = 0;
        for (const auto& one : here.holders()) {
            taken += one.weight;
        }
        ASSERT_LE(taken, 4U);
        for (std::size_t at = 0; at < calls.size(); ++at) {
            if (const auto lease = calls[at]->lease()) {
                (at % 2 == 0 ? here : there).release(lease);
                calls[at]->outcome->lease.reset();
                ++served;
                break;
            }
        }
    }
    EXPECT_TRUE(here.holders().empty());
    world.advance(10s);
    EXPECT_EQ(here.keys.known_keys(), 0U);
    EXPECT_EQ(there.keys.known_keys(), 0U);
}

TEST_F(MutexShared, AnotherCapacityIsAnErrorThatNamesBoth) {
    const auto permit = there.take(some_permits(1, 3));
    ASSERT_TRUE(permit);
    for (const auto wait : {nanoseconds{0s}, nanoseconds{1min}}) {
        const auto begun = world.now();
        const auto told = here.acquire(some_permits(1, 5, wait));
        world.run_ready();
        ASSERT_TRUE(told->outcome) << "at once: waiting would not help";
        EXPECT_EQ(told->when, begun);
        EXPECT_EQ(told->outcome->error, errc::capacity_differs);
        EXPECT_NE(told->outcome->detail.find("3 permits"), std::string::npos);
        EXPECT_NE(told->outcome->detail.find("5 permits"), std::string::npos);
    }
    const auto exclusive = here.acquire();
    world.run_ready();
    EXPECT_TRUE(exclusive->busy()) << "who wants it alone has no opinion about the capacity";
}

TEST_F(MutexShared, AQueuedWriterStopsLaterReadersAndThenLetsThemAllIn) {
    const auto first = here.take(reader());
    const auto writer = there.acquire(in_order(terms_of()));
    world.run_ready();
    std::vector<process::ended_ptr> readers;
    for (int number = 0; number < 6; ++number) {
        readers.push_back((number % 2 == 0 ? here : there).acquire(in_order(reader())));
        world.run_ready();
    }
    const auto racing = here.acquire(reader());
    world.run_ready();
    EXPECT_TRUE(racing->busy());
    EXPECT_EQ(granted_of(readers), 0);
    here.release(first);
    ASSERT_TRUE(granted(writer));
    EXPECT_EQ(granted_of(readers), 0);
    there.release(writer->lease());
    EXPECT_TRUE(world.run_until([&] { return granted_of(readers) == 6; }, 1s))
        << granted_of(readers) << " came by wake-ups, the others by timer";
}

TEST_F(MutexShared, AnAdoptedShareKeepsNobodyOfItsProcessWaiting) {
    const auto lent = there.take(reader());
    const auto adopted = std::make_shared<core::lease_state>(
        "k", lent->holder, lent->fence(), lent->terms, world.now(), lent->deadline());
    ASSERT_TRUE(there.keys.give_away(lent));
    here.keys.adopted(adopted, world.now());
    const auto next = here.acquire(reader(10min));
    EXPECT_TRUE(granted(next));
    EXPECT_TRUE(here.release(adopted)->released);
    EXPECT_EQ(here.holders().size(), 1U);
}

TEST_F(MutexShared, ReleasesWithOthersWaitingLeaveNothingBehind) {
    for (int number = 0; number < 50; ++number) {
        const auto key = "job-" + std::to_string(number);
        const auto lease = here.take(some_permits(1, 2), key);
        const auto heavy = there.acquire(some_permits(2, 2, 10ms), key);
        world.advance(11ms);
        EXPECT_TRUE(heavy->busy());
        here.release(lease);
    }
    world.advance(10s);
    EXPECT_EQ(here.keys.known_keys(), 0U);
    EXPECT_EQ(there.keys.known_keys(), 0U);
}

}  // namespace dibs::recipes
