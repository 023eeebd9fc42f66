// SPDX-License-Identifier: Apache-2.0
#include "simulation/network/line.hpp"

#include <algorithm>
#include <utility>

namespace dibs::simulation {

void line::send(direction way, world::event arrive) {
    if (random_.chance(weather_.lost_per_mille)) {
        return;
    }
    if (weather_.is_closed(way)) {
        // Some of it is sent again when the way is open: it arrives very late.
        if (random_.chance(500)) {
            held_back_[static_cast<int>(way)].push_back(std::move(arrive));
        }
        return;
    }
    deliver(way, std::move(arrive));
}

void line::deliver(direction way, world::event arrive) {
    auto delay = random_.between(weather_.delay_least, weather_.delay_most);
    if (random_.chance(weather_.slow_per_mille)) {
        delay += random_.skewed(core::nanoseconds{0}, weather_.slow_most);
    }
    auto& last = last_arrival_[static_cast<int>(way)];
    last = std::max(last, world_.now() + delay);
    world_.at(last, std::move(arrive));
}

std::optional<core::nanoseconds> line::draw_repetition() {
    if (!random_.chance(weather_.repeated_per_mille)) {
        return std::nullopt;
    }
    const auto longest = std::max(weather_.slow_most, weather_.delay_most);
    return random_.skewed(core::nanoseconds{0}, longest);
}

void line::opened() {
    for (const auto way : {direction::to_store, direction::to_client}) {
        if (weather_.is_closed(way)) {
            continue;
        }
        for (auto& one : std::exchange(held_back_[static_cast<int>(way)], {})) {
            deliver(way, std::move(one));
        }
    }
}

}  // namespace dibs::simulation
