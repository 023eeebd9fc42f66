// SPDX-License-Identifier: Apache-2.0
#pragma once
// What one run is made of, drawn from its seed: how many processes and keys, how long leases last,
// which faults are about. Each seed enables a random part of the faults, so that rare combinations
// come up and a fault that hides others is often absent.

#include "core/time.hpp"
#include "simulation/world/random.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dibs::simulation {

struct store_kind;
struct workload_kind;
struct fault_kind;

struct plan {
    std::uint64_t seed = 0;
    const store_kind* store = nullptr;
    const workload_kind* workload = nullptr;
    std::vector<const fault_kind*> faults;

    unsigned processes = 3;
    unsigned callers = 1;  ///< per process
    unsigned keys = 1;
    core::milliseconds ttl{};
    core::nanoseconds faults_for{};  ///< phase one
    core::nanoseconds healed_for{};  ///< phase two, beyond the time that progress may take
    core::nanoseconds work_most{};   ///< how long a caller holds a lease
    core::nanoseconds rest_most{};   ///< between two acquires of a caller
    unsigned cancel_per_mille = 0;

    [[nodiscard]] std::string text() const;
};

struct plan_wishes {
    std::string_view store{};     ///< empty: drawn
    std::string_view workload{};  ///< empty: drawn
    bool without_faults = false;
    /// Of the faults, these alone, with commas between; empty: drawn.
    std::string_view fault{};
};

/// Whether the store has what the workload needs.
[[nodiscard]] bool suits(const workload_kind& work, const store_kind& store);

/// Throws std::invalid_argument when there is no such store, workload or fault, or when they do not
/// go together.
[[nodiscard]] plan draw_plan(std::uint64_t seed, const plan_wishes& wishes);

}  // namespace dibs::simulation
