// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the processes of a run do with the lock, and what must hold of it in the end. One file per
// workload; workloads/table.cpp names them.

#include "simulation/run/scene.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace dibs::simulation {

class workload {
  public:
    virtual ~workload() = default;

    /// A process has come: gives it something to do.
    virtual void employ(client_process& newcomer) = 0;

    /// The run is over. Says through scene::complain what must not be.
    virtual void judge() {}

    /// Whether there is always something to be granted.
    [[nodiscard]] virtual bool goes_on() const { return true; }

    /// How often the least and the most lucky of those got it who stood in a queue all the time.
    struct spread {
        std::uint64_t least = 0;
        std::uint64_t most = 0;
    };
    [[nodiscard]] virtual std::optional<spread> grants_per_caller() const { return {}; }

    /// What the unfenced workload lost, by design.
    [[nodiscard]] virtual std::uint64_t lost_updates() const { return 0; }
};

struct workload_kind {
    std::string_view name;
    std::string_view about;
    std::unique_ptr<workload> (*make)(scene& on);
    /// Drawn for a seed that does not name one.
    bool drawn = true;
    /// What it proves rests on results that the store has acknowledged: faults that lose them do not
    /// go with it.
    bool counts_on_results = false;
    /// Callers wait in the store's queue: one that is dead or cut off holds up the others until its
    /// ticket's time is over.
    bool queues = false;
    /// Several hold a key at once: not every store can do that.
    bool shares = false;
};

[[nodiscard]] const std::vector<workload_kind>& workload_kinds();
[[nodiscard]] const workload_kind* workload_kind_named(std::string_view name);

}  // namespace dibs::simulation
