// SPDX-License-Identifier: Apache-2.0
#include "simulation/world/world.hpp"

#include <algorithm>
#include <utility>

namespace dibs::simulation {

void world::at(sim_time when, event what) {
    std::uint32_t slot = 0;
    if (free_.empty()) {
        slot = static_cast<std::uint32_t>(events_.size());
        events_.push_back(std::move(what));
    } else {
        slot = free_.back();
        free_.pop_back();
        events_[slot] = std::move(what);
    }
    heap_.push_back({std::max(when, now_), numbered_++, slot});
    std::push_heap(heap_.begin(), heap_.end(), later);
}

void world::run_until(sim_time end) {
    while (!heap_.empty() && heap_.front().when <= end) {
        std::pop_heap(heap_.begin(), heap_.end(), later);
        const auto next = heap_.back();
        heap_.pop_back();
        now_ = next.when;
        ++steps_;
        auto what = std::move(events_[next.slot]);
        events_[next.slot] = {};
        free_.push_back(next.slot);
        what();
    }
    now_ = std::max(now_, end);
}

void world::clear() {
    while (!events_.empty()) {
        auto all = std::exchange(events_, {});
        heap_.clear();
        free_.clear();
    }
}

}  // namespace dibs::simulation
