// SPDX-License-Identifier: Apache-2.0
// Goal: processes that take turns with a key do so without waiting for time and with few steps, on a
// store that wakes all who watch and tells whose release it was; and nobody is counted as waiting
// who is not. Method: two clients on virtual time, callers in loops.

#include "mutex_process.hpp"

#include <cstdint>
#include <list>
#include <vector>

namespace dibs::recipes {

namespace {

class MutexTurns : public Mutex {
  protected:
    struct grant {
        const process* who = nullptr;
        core::instant when{};
    };

    /// Acquires, works and releases, until so many were granted to all.
    void loop(process& who, nanoseconds work, std::size_t total) {
        who.keys.acquire("k", terms_of(10min), [&, work, total](const mutex_outcome& outcome) {
            if (!outcome.lease) {
                return;
            }
            EXPECT_GT(outcome.lease->fence(), last_fence_);
            last_fence_ = outcome.lease->fence();
            grants_.push_back({&who, world.now()});
            const auto go_on = [&, work, total, lease = outcome.lease] {
                who.keys.release(lease, [&, work, total](const release_reply&) {
                    if (grants_.size() < total) {
                        world.view().exec.post([&, work, total] { loop(who, work, total); });
                    }
                });
            };
            if (work == 0s) {
                world.view().exec.post(go_on);
            } else {
                pauses_.emplace_back(go_on);
                world.time().arm(pauses_.back(), world.now() + work);
            }
        });
    }
    void contend(nanoseconds work, std::size_t callers, std::size_t total) {
        for (std::size_t at = 0; at < callers; ++at) {
            loop(east, work, total);
            loop(west, work, total);
        }
        world.run_until([&] { return grants_.size() >= total; }, 10min);
    }
    [[nodiscard]] std::size_t crossings() const {
        std::size_t found = 0;
        for (std::size_t at = 1; at < grants_.size(); ++at) {
            found += grants_[at].who != grants_[at - 1].who ? 1 : 0;
        }
        return found;
    }
    [[nodiscard]] std::size_t steps() const {
        return east.line.count<core::acquire>() + east.line.count<core::release>() +
               west.line.count<core::acquire>() + west.line.count<core::release>();
    }
    /// Processes that wait, as everybody sees it.
    [[nodiscard]] std::uint32_t waiting() {
        std::uint32_t found = 0;
        bool told = false;
        east.line.list("k", "", 1, [&](const core::page& page) {
            told = true;
            found = page.records.empty() ? 0 : page.records[0].waiters;
        });
        world.run_until([&] { return told; }, 1s);
        return found;
    }
    void end() {
        east.keys.close();
        west.keys.close();
        world.run_ready();
    }

    process east{world, space + "-turns", true};
    process west{world, space + "-turns", true};
    std::vector<grant> grants_;

  private:
    std::list<core::timer> pauses_;
    core::fence_number last_fence_ = 0;
};

}  // namespace

TEST_F(MutexTurns, TwoProcessesWithLittleWorkTakeTurnsByTwoSteps) {
    const auto began = world.now();
    contend(40us, 4, 6400);
    ASSERT_GE(grants_.size(), 6400U);
    // The first who stands aside is not seen to wait; from then on each gives the key back after 64
    // grants, and takes it again as soon as the other one has had its turn.
    EXPECT_GE(crossings(), 88U);
    EXPECT_LE(grants_.back().when - began, 6400 * 40us + 5ms) << "the key lies idle";
    EXPECT_LE(steps(), 2 * crossings() + 40);
    EXPECT_EQ(east.line.watches, 1U);
    EXPECT_EQ(west.line.watches, 1U);
    end();
}

TEST_F(MutexTurns, TwoProcessesWithWorkTakeTurnsByThreeSteps) {
    const auto began = world.now();
    contend(10ms, 4, 2000);
    ASSERT_GE(grants_.size(), 2000U);
    EXPECT_GE(crossings(), 1000U) << "each gives the key back after ten milliseconds";
    EXPECT_LE(grants_.back().when - began, 2000 * 10ms + 10ms) << "the key lies idle";
    EXPECT_LE(steps(), 3 * crossings() + 8);
    EXPECT_LE(east.line.watches, 2U);
    EXPECT_LE(west.line.watches, 2U);
    end();
}

TEST_F(MutexTurns, SingleCallersTakeTurnsByThreeSteps) {
    const auto began = world.now();
    contend(1ms, 1, 200);
    ASSERT_GE(grants_.size(), 200U);
    EXPECT_GE(crossings(), 190U);
    EXPECT_LE(grants_.back().when - began, 200 * 1ms + 10ms) << "the key lies idle";
    EXPECT_LE(steps(), 3 * crossings() + 8);
    end();
}

TEST_F(MutexTurns, TheOwnReleaseDoesNotEndStandingAside) {
    const auto first = west.take();
    const auto one = east.acquire(terms_of(1min));
    const auto two = east.acquire(terms_of(1min));
    world.advance(100ms);
    west.release(first);
    world.run_ready();
    ASSERT_TRUE(one->lease());
    const auto other = west.acquire(terms_of(1min));
    world.advance(2s);  // too long for handing it on
    west.line.deaf = true;
    east.release(one->lease());
    world.run_ready();
    EXPECT_FALSE(two->lease()) << "another process waits, and was told a moment ago";
    world.advance(10ms);
    EXPECT_TRUE(two->lease()) << "it did not come";
    west.line.deaf = false;
    end();
}

TEST_F(MutexTurns, AHolderForWhomNobodyWaitsAnyMoreStopsWatching) {
    const auto first = west.take();
    const auto one = east.acquire(terms_of(1min));
    const auto gives_up = east.acquire(terms_of(300ms));
    world.advance(100ms);
    west.release(first);
    world.run_ready();
    ASSERT_TRUE(one->lease());
    EXPECT_EQ(waiting(), 1U) << "the second of the line waits";
    world.advance(2s);
    ASSERT_TRUE(gives_up->busy());
    EXPECT_EQ(waiting(), 0U) << "nobody waits, so nobody is to be told so";
    EXPECT_TRUE(one->lease()->held(world.now()));
    end();
}

TEST_F(MutexTurns, WhoeverIsDoneStopsWatching) {
    contend(0s, 4, 640);
    world.advance(1s);
    EXPECT_EQ(east.keys.known_keys(), 0U);
    EXPECT_EQ(west.keys.known_keys(), 0U);
    EXPECT_EQ(waiting(), 0U);
}

TEST_F(MutexTurns, ACrowdIsServedWithoutAllOfItAskingAtEachRelease) {
    constexpr std::size_t crowd = 100;
    constexpr auto work = 50ms;
    std::list<process> all;
    std::list<core::timer> ends;
    std::size_t served = 0;
    const auto began = world.now();
    for (std::size_t at = 0; at < crowd; ++at) {
        auto& one = all.emplace_back(world, space + "-crowd", true);
        one.keys.acquire("k", terms_of(10min), [&](const mutex_outcome& outcome) {
            ASSERT_TRUE(outcome.lease);
            ++served;
            ends.emplace_back([&one, lease = outcome.lease] {
                one.keys.release(lease, [](const release_reply&) {});
            });
            world.time().arm(ends.back(), world.now() + work);
        });
    }
    world.run_until([&] { return served == crowd; }, 10min);
    EXPECT_EQ(served, crowd);
    world.advance(work);
    std::size_t asked = 0;
    for (auto& one : all) {
        asked += one.line.count<core::acquire>();
    }
    EXPECT_LE(asked, 10 * crowd) << "all of them ask at each release";
    EXPECT_LE(world.now() - began, crowd * work + 10s) << "the key lies idle";
}

}  // namespace dibs::recipes
