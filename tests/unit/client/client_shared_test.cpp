// SPDX-License-Identifier: Apache-2.0
// Shared leases and several keys through the public client, with real threads and real time.

#include "support/eventually.hpp"

#include <dibs/async.hpp>
#include <dibs/dibs.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace dibs {

namespace {

using namespace std::chrono_literals;
using dibs::testing::eventually;

/// A name that no other test uses.
std::string some_space() {
    static std::atomic<int> last{0};
    return "memory:client-shared-test-" + std::to_string(++last);
}

class told_by_handler final : public acquire_handler {
  public:
    using callback = std::function<void(std::error_code, std::optional<lease>)>;
    explicit told_by_handler(callback told) : told_{std::move(told)} {}
    void complete(std::error_code error, std::optional<lease> granted) override {
        told_(error, std::move(granted));
    }

  private:
    callback told_;
};

}  // namespace

TEST(ClientShared, ReadersGoTogetherAndAWriterGoesAlone) {
    const auto space = some_space();
    client here{space};
    client there{space};
    auto first = here.try_acquire("k", {.mode = shared});
    auto second = here.acquire("k", {.wait = 10s, .mode = shared});
    auto third = there.try_acquire("k", {.mode = shared});
    ASSERT_TRUE(first && second && third);
    EXPECT_NE(first->fence(), second->fence()) << "each is told from the others";
    EXPECT_FALSE(there.try_acquire("k"));
    const auto seen = there.inspect("k");
    ASSERT_TRUE(seen);
    EXPECT_EQ(seen->capacity, mode::unlimited);
    EXPECT_EQ(seen->holders.size(), 3U);
    for (auto* reader : {&first, &second, &third}) {
        EXPECT_EQ((*reader)->release(), release_outcome::released);
    }
    auto writer = there.try_acquire("k");
    ASSERT_TRUE(writer);
    EXPECT_FALSE(here.try_acquire("k", {.mode = shared}));
}

TEST(ClientShared, PermitsAreCountedByWeightInEveryForm) {
    const auto space = some_space();
    client through{space};
    auto two = through.try_acquire("k", {.mode = permits(2).of(3)});
    ASSERT_TRUE(two);
    std::error_code error;
    EXPECT_FALSE(through.try_acquire("k", {.mode = permits(2).of(3)}, error));
    EXPECT_FALSE(error);
    std::atomic<bool> told{false};
    std::optional<lease> by_callback;
    start_acquire(
        through,
        "k",
        {.mode = permits(1).of(3)},
        std::make_unique<told_by_handler>([&](std::error_code fault, std::optional<lease> granted) {
            EXPECT_FALSE(fault);
            by_callback = std::move(granted);
            told = true;
        }));
    ASSERT_TRUE(eventually([&] { return told.load(); }));
    ASSERT_TRUE(by_callback);
    const auto seen = through.inspect("k");
    ASSERT_EQ(seen->holders.size(), 2U);
    EXPECT_EQ(seen->holders[0].weight + seen->holders[1].weight, 3U);
    EXPECT_EQ(seen->capacity, 3U);
}

TEST(ClientShared, WhoDisagreesAboutTheCapacityIsToldKeyAndBothNumbers) {
    const auto space = some_space();
    client through{space};
    const auto held = through.try_acquire("licences", {.mode = permits(1).of(3)});
    ASSERT_TRUE(held);
    try {
        (void)through.acquire("licences", {.wait = 1min, .mode = permits(1).of(5)});
        FAIL() << "it must not wait";
    } catch (const error& fault) {
        const std::string what = fault.what();
        EXPECT_EQ(fault.code(), errc::capacity_differs);
        EXPECT_EQ(fault.code(), condition::invalid_argument);
        for (const auto* part : {"licences", "3 permits", "5 permits"}) {
            EXPECT_NE(what.find(part), std::string::npos) << what;
        }
    }
    try {
        (void)through.acquire("licences", {.wait = 1min, .mode = shared});
        FAIL() << "a reader does not wait for permits";
    } catch (const error& fault) {
        const std::string what = fault.what();
        EXPECT_NE(what.find("readers and permits need a key each"), std::string::npos) << what;
    }
    std::error_code error;
    EXPECT_FALSE(through.try_acquire("licences", {.mode = permits(4).of(3)}, error));
    EXPECT_EQ(error, errc::invalid_argument) << "nobody can take more than there is";
}

TEST(ClientShared, ThreadsNeverHoldMoreThanThereIs) {
    const auto space = some_space();
    std::vector<std::unique_ptr<client>> clients;
    for (int number = 0; number < 2; ++number) {
        clients.push_back(std::make_unique<client>(space));
    }
    std::atomic<int> inside{0};
    std::atomic<int> most{0};
    std::atomic<int> done{0};
    {
        std::vector<std::jthread> threads;
        for (int number = 0; number < 8; ++number) {
            threads.emplace_back([&, number] {
                for (int round = 0; round < 20; ++round) {
                    auto held =
                        clients[number % 2]->acquire("k", {.wait = 5min, .mode = permits(1).of(3)});
                    if (!held) {
                        continue;
                    }
                    const int now = ++inside;
                    for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
                    }
                    std::this_thread::yield();
                    --inside;
                    ++done;
                    (void)held->release();
                }
            });
        }
    }
    EXPECT_EQ(done, 160);
    EXPECT_LE(most, 3);
}

TEST(ClientShared, ASharedLeaseIsHandedOverAndKeepsNoReaderOfTheAdopterOut) {
    const auto space = some_space();
    client from{space};
    client to{space};
    auto lent = from.try_acquire("k", {.mode = shared});
    auto adopted = to.adopt(lent->hand_over());
    EXPECT_TRUE(adopted.held());
    EXPECT_TRUE(to.acquire("k", {.wait = 5min, .mode = shared}));
    EXPECT_FALSE(to.try_acquire("k")) << "it is a reader's lease still";
    EXPECT_EQ(adopted.release(), release_outcome::released);
    EXPECT_TRUE(to.try_acquire("k"));
}

TEST(ClientShared, SeveralKeysAreTakenAllOrNone) {
    const auto space = some_space();
    client through{space};
    client other{space};
    auto all = through.acquire_all({"b", "a", "b"});
    ASSERT_TRUE(all);
    EXPECT_EQ(all->size(), 2U);
    EXPECT_TRUE(all->held());
    EXPECT_GT(all->remaining(), 0s);
    EXPECT_EQ((*all)[0].key(), "a");
    EXPECT_EQ(all->fence("b"), all->find("b")->fence());
    EXPECT_EQ(all->find("c"), nullptr);
    EXPECT_THROW((void)all->fence("c"), error);
    std::error_code error;
    EXPECT_FALSE(other.acquire_all({"a", "c"}, {}, {}, error));
    EXPECT_FALSE(error) << "busy is no error";
    EXPECT_EQ(all->release(), release_outcome::released);
    EXPECT_FALSE(all->held());
    auto others = other.acquire_all({"c", "a"}, {.wait = 5min});
    ASSERT_TRUE(others);
    others.reset();
    EXPECT_TRUE(eventually([&] { return through.try_acquire("a").has_value(); }));
    EXPECT_FALSE(through.acquire_all({}, {}, {}, error));
    EXPECT_EQ(error, errc::invalid_argument);
    EXPECT_FALSE(through.acquire_all({"a", ""}, {}, {}, error));
    EXPECT_EQ(error, errc::invalid_key);
}

TEST(ClientShared, ASetGivesBackWhatIsLeftOfIt) {
    client through{"memory:"};
    auto all = through.acquire_all({"a", "b", "c"});
    ASSERT_TRUE(all);
    const auto text = (*all)[0].hand_over();
    const auto moved_out = std::move((*all)[1]);
    EXPECT_EQ(all->release(), release_outcome::not_held) << "not all of it was its own";
    EXPECT_FALSE(through.try_acquire("a")) << "whoever has the text has it";
    EXPECT_TRUE(moved_out.held());
    EXPECT_FALSE((*all)[2].held());
    EXPECT_TRUE(through.try_acquire("c"));
    EXPECT_EQ(all->release(), release_outcome::not_held);
}

TEST(ClientShared, TheLossOfOneKeyIsToldForAll) {
    const auto space = some_space();
    client through{space};
    client other{space};
    auto all = through.acquire_all({"a", "b"}, {.ttl = 300ms});
    ASSERT_TRUE(all);
    const auto lost = all->lost();
    EXPECT_FALSE(lost.stop_requested());
    EXPECT_TRUE(other.revoke("b", all->fence("b")));
    EXPECT_TRUE(eventually([&] { return lost.stop_requested(); }));
    EXPECT_FALSE(all->held());
    EXPECT_TRUE(all->find("a")->held()) << "it is a lease of its own";
    EXPECT_EQ(all->release(), release_outcome::not_held);
}

TEST(ClientShared, ACallbackOnTheLossMayDestroyTheSet) {
    const auto space = some_space();
    client through{space};
    client other{space};
    auto all = through.acquire_all({"a", "b"}, {.ttl = 300ms});
    ASSERT_TRUE(all);
    const auto fence = all->fence("a");
    std::atomic<bool> gone{false};
    const std::stop_callback on_loss(all->lost(), [&] {
        all.reset();
        gone = true;
    });
    EXPECT_TRUE(other.revoke("a", fence));
    EXPECT_TRUE(eventually([&] { return gone.load(); }));
    EXPECT_TRUE(eventually([&] { return other.try_acquire("b").has_value(); }));
}

TEST(ClientShared, AWaitForSeveralKeysIsStopped) {
    const auto space = some_space();
    client through{space};
    client other{space};
    const auto held = other.try_acquire("b");
    std::stop_source stop;
    std::error_code error;
    std::jthread waits([&] {
        EXPECT_FALSE(through.acquire_all({"a", "b"}, {.wait = forever}, stop.get_token(), error));
    });
    ASSERT_TRUE(eventually([&] { return !other.try_acquire("a"); })) << "the first is taken";
    stop.request_stop();
    waits.join();
    EXPECT_EQ(error, condition::cancelled);
    EXPECT_TRUE(eventually([&] { return other.try_acquire("a").has_value(); }));
}

TEST(ClientShared, OppositeOrdersInThreadsAllGetThrough) {
    const auto space = some_space();
    std::atomic<int> served{0};
    std::vector<std::jthread> threads;
    for (int number = 0; number < 6; ++number) {
        threads.emplace_back([&, number] {
            client through{space};
            const std::vector<std::string> order = number % 2 == 0
                                                       ? std::vector<std::string>{"a", "b"}
                                                       : std::vector<std::string>{"b", "a"};
            for (int round = 0; round < 10; ++round) {
                served += through.acquire_all(order, {.wait = 5min}) ? 1 : 0;
            }
        });
    }
    threads.clear();
    EXPECT_EQ(served, 60);
}

}  // namespace dibs
