// SPDX-License-Identifier: Apache-2.0
#pragma once
// The stage of one run: the world, its machines, the store, the processes, and what is written down.
// Faults and workloads act on it.

#include "simulation/history/invariants.hpp"
#include "simulation/history/recorder.hpp"
#include "simulation/network/line.hpp"
#include "simulation/process/client_process.hpp"
#include "simulation/run/plan.hpp"
#include "simulation/stores/store_model.hpp"
#include "simulation/world/host.hpp"
#include "simulation/world/random.hpp"
#include "simulation/world/world.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace dibs::simulation {

/// Where a process lives: a machine and a line to the store. When it is killed a new one, with
/// another name, takes its place.
struct seat {
    std::unique_ptr<host> machine;  ///< empty: all share the first one's
    host* on = nullptr;
    weather conditions;
    std::unique_ptr<client_process> now;
    unsigned lives = 0;
};

class scene {
  public:
    explicit scene(const plan& drawn);
    ~scene();
    scene(const scene&) = delete;
    scene& operator=(const scene&) = delete;

    const plan& drawn;
    simulation::world world;
    recorder history{world};
    invariants laws;
    traffic counted;
    random chance;

    [[nodiscard]] std::vector<seat>& seats() noexcept { return seats_; }
    [[nodiscard]] store_model& store() noexcept { return *store_; }
    [[nodiscard]] bool healed() const noexcept { return healed_; }

    /// What a new process does.
    std::function<void(client_process&)> put_to_work;

    void start_all();
    void kill(seat& one, core::nanoseconds down_for);
    /// Its client ends in good order, and the process after `patience`, wherever that is by then.
    void close(seat& one, core::nanoseconds patience, core::nanoseconds down_for);
    /// Breaks the connections of everybody, as when the store stops.
    void cut_all();
    void line_opened(seat& one);

    /// The second phase begins.
    void heal();

    /// Something that no history can show has gone wrong.
    void complain(std::string what) { complaints_.push_back(std::move(what)); }
    [[nodiscard]] const std::vector<std::string>& complaints() const noexcept {
        return complaints_;
    }

  private:
    void start(seat& one);
    void note_clocks(const host& of);

    std::unique_ptr<store_model> store_;
    std::vector<seat> seats_;
    std::vector<std::unique_ptr<client_process>> dead_;
    std::vector<std::string> complaints_;
    std::uint64_t processes_ = 0;
    bool healed_ = false;
};

}  // namespace dibs::simulation
