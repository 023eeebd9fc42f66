// SPDX-License-Identifier: Apache-2.0
// What the suite cannot ask of every store: which memory stores share their records, and that those
// of several threads may. Method: each thread has its own executor and store object, as a client
// has.

#include "store/memory/memory_store.hpp"
#include "support/manual_store_clock.hpp"
#include "support/pumped_environment.hpp"
#include "support/verbs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace dibs::store {

namespace {

using namespace std::chrono_literals;
using namespace dibs::testing;
using core::verdict;

/// A store object on an executor of its own, used by one thread.
class lone_view {
  public:
    lone_view(std::string name, const manual_store_clock& clock) {
        memory_options options;
        options.name = std::move(name);
        options.clock = clock.reader();
        store_ = make_memory_store(world_.view(), std::move(options));
    }

    core::answer ask(core::verb what) {
        std::optional<core::answer> given;
        core::entry one;
        one.what = std::move(what);
        one.deadline = world_.now() + 1h;
        std::vector<core::entry> batch;
        batch.push_back(std::move(one));
        store_->execute(
            lane::others, std::move(batch), [&](answers told) { given = std::move(told.front()); });
        EXPECT_TRUE(world_.run_until([&] { return given.has_value(); }));
        return std::move(given).value();
    }

    /// Asks for the key, and waits to be woken while somebody else has it.
    core::answer wait_for(const std::string& key, core::holder_id holder) {
        int wakes = 0;
        bool ready = false;
        const auto id = store_->watch(
            key, [&](std::error_code) { ready = true; }, [&](auto) { ++wakes; });
        EXPECT_TRUE(world_.run_until([&] { return ready; }));
        for (;;) {
            const int before = wakes;
            auto given = ask(acquire_of(key, holder));
            if (given.what != verdict::held) {
                store_->unwatch(id);
                return given;
            }
            if (!world_.run_until([&] { return wakes > before; })) {
                ADD_FAILURE() << "never woken";
                store_->unwatch(id);
                return given;
            }
        }
    }

    [[nodiscard]] const std::string& location() const { return store_->location(); }

  private:
    pumped_environment world_;
    std::unique_ptr<store> store_;
};

}  // namespace

TEST(MemorySharing, AStoreWithoutANameIsPrivate) {
    manual_store_clock clock;
    lone_view one{"", clock};
    lone_view other{"", clock};
    EXPECT_EQ(one.ask(acquire_of("k", holder_of(1))).what, verdict::granted);
    EXPECT_EQ(other.ask(acquire_of("k", holder_of(2))).what, verdict::granted);
    EXPECT_EQ(one.location(), "memory:");
}

TEST(MemorySharing, StoresOfOneNameShareAndOthersDoNot) {
    manual_store_clock clock;
    lone_view one{"red", clock};
    lone_view other{"red", clock};
    lone_view elsewhere{"blue", clock};
    EXPECT_EQ(one.ask(acquire_of("k", holder_of(1))).what, verdict::granted);
    EXPECT_EQ(other.ask(acquire_of("k", holder_of(2))).what, verdict::held);
    EXPECT_EQ(elsewhere.ask(acquire_of("k", holder_of(3))).what, verdict::granted);
    EXPECT_EQ(one.location(), "memory:red");
}

TEST(MemorySharing, ANameIsForgottenWithItsLastStore) {
    manual_store_clock clock;
    auto detached = acquire_of("k", holder_of(1));
    detached.attached = core::attachment::detached;
    {
        lone_view one{"green", clock};
        EXPECT_EQ(one.ask(detached).what, verdict::granted);
    }
    lone_view next{"green", clock};
    EXPECT_EQ(next.ask(acquire_of("k", holder_of(2))).what, verdict::granted);
}

TEST(MemorySharing, NeedsAClock) {
    pumped_environment world;
    EXPECT_THROW(static_cast<void>(make_memory_store(world.view(), {})), std::invalid_argument);
}

TEST(MemorySharing, ThreadsExcludeAndWakeEachOther) {
    constexpr int threads = 4;
    constexpr int rounds = 100;
    const manual_store_clock clock;
    // Keeps the name alive: a thread that is done early must not take the records along.
    const lone_view keeper{"threads", clock};
    std::atomic<int> inside{0};
    std::atomic<int> overlaps{0};
    std::vector<core::fence_number> fences;  // written by the holder alone
    std::vector<std::thread> running;
    for (int number = 0; number < threads; ++number) {
        running.emplace_back([&, number] {
            lone_view view{"threads", clock};
            for (int round = 0; round < rounds; ++round) {
                const auto holder = holder_of(static_cast<std::uint64_t>(number * rounds + round));
                const auto granted = view.wait_for("k", holder);
                if (granted.what != verdict::granted) {
                    ADD_FAILURE() << "not granted";
                    return;
                }
                overlaps += inside.fetch_add(1) == 0 ? 0 : 1;
                fences.push_back(granted.fences.last);
                inside.fetch_sub(1);
                EXPECT_EQ(view.ask(release_of("k", holder)).what, verdict::released);
            }
        });
    }
    for (auto& thread : running) {
        thread.join();
    }
    EXPECT_EQ(overlaps, 0);
    EXPECT_EQ(fences.size(), static_cast<std::size_t>(threads * rounds));
    EXPECT_EQ(std::adjacent_find(fences.begin(), fences.end(), std::greater_equal<>{}),
              fences.end())
        << "not strictly rising";
}

}  // namespace dibs::store
