// SPDX-License-Identifier: Apache-2.0
#include "simulation/run/plan.hpp"

#include "simulation/faults/fault.hpp"
#include "simulation/stores/store_model.hpp"
#include "simulation/workloads/workload.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <stdexcept>

namespace dibs::simulation {

namespace {

const store_kind* drawn_store(random& chance, std::string_view wished) {
    if (wished.empty()) {
        const auto& all = store_kinds();
        const auto weights =
            std::accumulate(all.begin(), all.end(), 0U, [](unsigned sum, const auto& one) {
                return sum + one.weight;
            });
        auto lot = chance.below(weights);
        for (const auto& one : all) {
            if (lot < one.weight) {
                return &one;
            }
            lot -= one.weight;
        }
    }
    const auto* found = store_kind_named(wished);
    if (found == nullptr) {
        throw std::invalid_argument{"no store model is called " + std::string{wished}};
    }
    return found;
}

const workload_kind* drawn_workload(random& chance,
                                    std::string_view wished,
                                    const store_kind& store) {
    if (wished.empty()) {
        for (;;) {
            const auto& one = workload_kinds()[chance.below(workload_kinds().size())];
            if (one.drawn && suits(one, store)) {
                return &one;
            }
        }
    }
    const auto* found = workload_kind_named(wished);
    if (found == nullptr) {
        throw std::invalid_argument{"no workload is called " + std::string{wished}};
    }
    if (!suits(*found, store)) {
        throw std::invalid_argument{"the store " + std::string{store.name} +
                                    " has no shared leases"};
    }
    return found;
}

/// Names with commas between.
std::set<std::string_view> words_of(std::string_view list) {
    std::set<std::string_view> words;
    while (!list.empty()) {
        const auto length = std::min(list.find(','), list.size());
        words.insert(list.substr(0, length));
        list.remove_prefix(std::min(length + 1, list.size()));
    }
    return words;
}

}  // namespace

bool suits(const workload_kind& work, const store_kind& store) {
    return store.shares || !work.shares;
}

plan draw_plan(std::uint64_t seed, const plan_wishes& wishes) {
    // Its own generator: what is drawn here does not move what the run draws.
    random chance{seed ^ 0xD1B5U};
    plan drawn;
    drawn.seed = seed;
    drawn.store = drawn_store(chance, wishes.store);
    drawn.workload = drawn_workload(chance, wishes.workload, *drawn.store);
    drawn.processes = static_cast<unsigned>(chance.between(2, 5));
    drawn.callers = static_cast<unsigned>(chance.chance(500) ? 1 : chance.between(2, 5));
    drawn.keys = static_cast<unsigned>(chance.chance(700) ? 1 : chance.between(2, 3));
    drawn.ttl = core::milliseconds{chance.between(200, 3000)};
    drawn.faults_for = chance.between(6 * drawn.ttl, 14 * drawn.ttl);
    drawn.healed_for = 2 * drawn.ttl;
    // About as many turns whatever the length of the run.
    const auto least = drawn.faults_for * (drawn.processes * drawn.callers) / 2500;
    drawn.work_most = chance.skewed(least, 2 * drawn.ttl);
    drawn.rest_most = chance.skewed(least, 2 * drawn.ttl);
    drawn.cancel_per_mille = static_cast<unsigned>(chance.chance(500) ? chance.below(300) : 0);
    const auto wished_faults = words_of(wishes.fault);
    for (const auto one : wished_faults) {
        if (fault_kind_named(one) == nullptr) {
            throw std::invalid_argument{"no fault is called " + std::string{one}};
        }
    }
    for (const auto& one : fault_kinds()) {
        const bool by_lot = chance.chance(one.per_mille);
        const bool wished = wished_faults.empty() ? by_lot : wished_faults.contains(one.name);
        const bool suits =
            one.suits(*drawn.store) && !(one.loses_results && drawn.workload->counts_on_results);
        if (wished && !wishes.without_faults && suits) {
            drawn.faults.push_back(&one);
        }
    }
    return drawn;
}

std::string plan::text() const {
    std::string told = "seed " + std::to_string(seed) + ": store " + std::string{store->name} +
                       ", workload " + std::string{workload->name} + ", " +
                       std::to_string(processes) + " processes of " + std::to_string(callers) +
                       " callers, " + std::to_string(keys) + " keys, ttl " +
                       std::to_string(ttl.count()) + " ms, faults:";
    for (const auto* one : faults) {
        told += " " + std::string{one->name};
    }
    return faults.empty() ? told + " none" : told;
}

}  // namespace dibs::simulation
