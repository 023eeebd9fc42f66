// SPDX-License-Identifier: Apache-2.0
#pragma once
// The way between a process and a store: messages of one connection stay in order, those of several
// do not. What it does to messages is set by faults.

#include "simulation/world/random.hpp"
#include "simulation/world/world.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace dibs::simulation {

enum class direction : std::uint8_t { to_store, to_client };

/// What befalls the messages between one process and the store.
struct weather {
    core::nanoseconds delay_least = core::microseconds{30};
    core::nanoseconds delay_most = core::microseconds{200};
    unsigned slow_per_mille = 0;  ///< messages that take up to `slow_most`
    core::nanoseconds slow_most{};
    unsigned lost_per_mille = 0;
    unsigned repeated_per_mille = 0;  ///< requests that arrive twice
    bool repeats = false;             ///< some may have been, at any time of the run
    bool closed[2] = {false, false};  ///< by direction

    [[nodiscard]] bool is_closed(direction way) const noexcept {
        return closed[static_cast<int>(way)];
    }
};

/// One connection. Made anew after each break, so that what was on its way is on the old one.
class line {
  public:
    line(world& in, const weather& conditions, random from)
        : world_(in), weather_(conditions), random_(from) {}

    /// `arrive` happens later, or never.
    void send(direction way, world::event arrive);
    /// How long after a request that is about to be sent a copy of it arrives, if one does: it took
    /// another way. The store carries it out once more, and its answer is nobody's.
    [[nodiscard]] std::optional<core::nanoseconds> draw_repetition();

    /// For messages that were held back while a direction was closed.
    void opened();

  private:
    void deliver(direction way, world::event arrive);

    world& world_;
    const weather& weather_;
    random random_;
    sim_time last_arrival_[2]{};
    std::vector<world::event> held_back_[2];
};

}  // namespace dibs::simulation
