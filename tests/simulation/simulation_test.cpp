// SPDX-License-Identifier: Apache-2.0
// Goal: the simulator itself can be trusted: a seed is a run, every fault strikes, the workload
// without fences is hard enough to lose updates, and speed is not bought by doing nothing.

#include "simulation/faults/fault.hpp"
#include "simulation/run/run.hpp"
#include "simulation/run/seeds.hpp"
#include "simulation/stores/store_model.hpp"
#include "simulation/workloads/workload.hpp"
#include "simulation/world/host.hpp"
#include "simulation/world/world.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dibs::simulation {

namespace {

TEST(Simulation, ASeedIsTheSameRunAgain) {
    for (const auto& store : store_kinds()) {
        for (std::uint64_t seed = 1; seed <= seeds_for_test(5); ++seed) {
            const auto drawn = draw_plan(seed, {.store = store.name});
            const auto first = run(drawn);
            const auto second = run(drawn);
            ASSERT_EQ(first.history.text(), second.history.text()) << drawn.text();
            const auto other = run(draw_plan(seed + 100, {.store = store.name}));
            EXPECT_NE(other.history.text(), first.history.text());
        }
    }
}

TEST(Simulation, EveryFaultStrikes) {
    for (const auto& one : fault_kinds()) {
        bool struck = false;
        for (std::uint64_t seed = 1; seed <= 20 && !struck; ++seed) {
            const auto drawn = draw_plan(seed, {.fault = one.name});
            const auto told = run(drawn);
            const auto& all = told.history.events.events;
            struck =
                !drawn.faults.empty() && std::any_of(all.begin(), all.end(), [](const auto& at) {
                    return at.what == dibs_checker::op::fault;
                });
        }
        EXPECT_TRUE(struck) << one.name;
    }
}

TEST(Simulation, EveryWorkloadDoesWorkOnEveryStore) {
    for (const auto& store : store_kinds()) {
        for (const auto& work : workload_kinds()) {
            if (!suits(work, store)) {
                continue;
            }
            const auto told = judged_run(
                draw_plan(7, {.store = store.name, .workload = work.name, .without_faults = true}));
            EXPECT_TRUE(told.violations.empty()) << store.name << ", " << work.name;
            EXPECT_GT(told.grants, 2U) << store.name << ", " << work.name;
        }
    }
}

// Otherwise the runs are too mild for the fence to be of use.
TEST(Simulation, WithoutFencesUpdatesAreLost) {
    std::uint64_t lost = 0;
    for (std::uint64_t seed = 1; seed <= 60 && lost == 0; ++seed) {
        lost += run(draw_plan(seed, {.workload = "unfenced", .fault = "pause"})).lost_updates;
    }
    EXPECT_GT(lost, 0U);
}

TEST(Simulation, LeasesGoFromProcessToProcess) {
    const auto told = run(draw_plan(1, {.workload = "hand-over", .without_faults = true}));
    EXPECT_TRUE(told.violations.empty()) << told.violations.front();
    EXPECT_NE(told.history.text().find(R"("op":"adopt","ph":"ok")"), std::string::npos);
}

TEST(Simulation, APlanWithAnUnknownNameIsRefused) {
    EXPECT_THROW(static_cast<void>(draw_plan(1, {.store = "abacus"})), std::invalid_argument);
    EXPECT_THROW(static_cast<void>(draw_plan(1, {.workload = "none"})), std::invalid_argument);
    EXPECT_THROW(static_cast<void>(draw_plan(1, {.fault = "luck"})), std::invalid_argument);
}

TEST(Simulation, AStoreWithoutSharesIsNotAskedForThem) {
    for (const auto& store : store_kinds()) {
        const auto ask = [&] {
            static_cast<void>(draw_plan(1, {.store = store.name, .workload = "shared"}));
        };
        if (store.shares) {
            EXPECT_NO_THROW(ask()) << store.name;
        } else {
            EXPECT_THROW(ask(), std::invalid_argument) << store.name;
        }
    }
}

// A slow model must not crowd the others out, nor be left out.
TEST(Simulation, EveryStoreHasItsShareOfTheSeeds) {
    std::map<std::string_view, unsigned> seeds;
    for (std::uint64_t seed = 1; seed <= 5000; ++seed) {
        ++seeds[draw_plan(seed, {}).store->name];
    }
    for (const auto& store : store_kinds()) {
        EXPECT_GE(seeds[store.name], 800U) << store.name;
    }
}

TEST(World, EventsComeInTheOrderOfTimeAndThenOfNumber) {
    world all;
    std::vector<int> seen;
    all.at(core::milliseconds{2}, [&] { seen.push_back(3); });
    all.at(core::milliseconds{1}, [&] { seen.push_back(1); });
    all.at(core::milliseconds{1}, [&] {
        seen.push_back(2);
        all.in(core::nanoseconds{0}, [&] { seen.push_back(20); });
    });
    all.run_until(core::milliseconds{1});
    EXPECT_EQ(seen, (std::vector<int>{1, 2, 20}));
    all.run_until(core::milliseconds{5});
    EXPECT_EQ(seen.back(), 3);
    EXPECT_EQ(all.now(), core::milliseconds{5});
}

TEST(World, WhatIsFarAheadComesBetweenWhatIsNear) {
    world all;
    random chance{3};
    std::vector<std::pair<sim_time, int>> seen;
    for (int number = 0; number < 500; ++number) {
        const auto when = all.now() + sim_time{chance.between(0, 3'000'000)};
        all.at(when, [&seen, &all, when, number] {
            EXPECT_EQ(all.now(), when);
            seen.emplace_back(when, number);
        });
        if (number % 10 == 0) {
            all.run_until(all.now() + core::microseconds{40});
            EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
            seen.clear();
        }
    }
    all.run_until(core::milliseconds{5});
    EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
    EXPECT_FALSE(seen.empty());
}

TEST(Host, AClockReachesAMomentExactlyWhenItSays) {
    world all;
    host machine{all, "host", std::chrono::hours{3}, std::chrono::hours{24}};
    random chance{5};
    for (int turn = 0; turn < 200; ++turn) {
        machine.set_rate(chance.between(-20'000, 20'000));
        const auto due =
            machine.now() + chance.between(core::nanoseconds{1}, std::chrono::seconds{5});
        const auto when = machine.when(due);
        all.run_until(when - core::nanoseconds{1});
        EXPECT_LT(machine.now(), due);
        all.run_until(when);
        EXPECT_GE(machine.now(), due);
    }
}

TEST(Host, AStepMovesTheCalendarAlone) {
    world all;
    host machine{all, "host", std::chrono::hours{3}, std::chrono::hours{24}};
    const auto before = machine.now();
    const auto wall = machine.wall();
    machine.step_wall(-std::chrono::seconds{10});
    EXPECT_EQ(machine.now(), before);
    EXPECT_EQ(machine.wall(), wall - std::chrono::seconds{10});
}

}  // namespace

}  // namespace dibs::simulation
