// SPDX-License-Identifier: Apache-2.0
#include "simulation/world/world.hpp"

#include <algorithm>
#include <utility>

namespace dibs::simulation {

namespace {

/// A task, an answer.
constexpr core::nanoseconds soon = core::microseconds{500};

}  // namespace

std::vector<world::entry>* world::next() noexcept {
    if (soon_.empty() || later_.empty()) {
        return !soon_.empty() ? &soon_ : !later_.empty() ? &later_ : nullptr;
    }
    return later{}(soon_.front(), later_.front()) ? &later_ : &soon_;
}

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
    auto& heap = when - now_ < soon ? soon_ : later_;
    heap.push_back({std::max(when, now_), numbered_++, slot});
    std::push_heap(heap.begin(), heap.end(), later{});
}

void world::run_until(sim_time end) {
    for (auto* heap = next(); heap != nullptr && heap->front().when <= end; heap = next()) {
        std::pop_heap(heap->begin(), heap->end(), later{});
        const auto first = heap->back();
        heap->pop_back();
        now_ = first.when;
        ++steps_;
        auto what = std::move(events_[first.slot]);
        events_[first.slot] = {};
        free_.push_back(first.slot);
        what();
    }
    now_ = std::max(now_, end);
}

void world::clear() {
    while (!events_.empty()) {
        auto all = std::exchange(events_, {});
        soon_.clear();
        later_.clear();
        free_.clear();
    }
}

}  // namespace dibs::simulation
