// SPDX-License-Identifier: Apache-2.0
#include "checker/clock_map.hpp"

#include <algorithm>

namespace dibs_checker {
namespace {

// Products of two times do not fit into 64 bits.
__extension__ using wide = __int128;

std::int64_t saturated(wide time) {
    return time > never ? never : static_cast<std::int64_t>(time);
}

std::int64_t asked(const std::unordered_map<text_id, clock_line>& clocks,
                   text_id whose,
                   std::int64_t shown,
                   std::int64_t from) {
    const auto found = clocks.find(whose);
    return found == clocks.end() ? from : found->second.reaches(shown, from);
}

}  // namespace

void clock_line::add(std::int64_t sim, std::int64_t shown) {
    if (!pairs_.empty() && shown < pairs_.back().shown) {
        falls_.push_back(pairs_.size());
    }
    pairs_.push_back({sim, shown});
}

std::int64_t clock_line::between(const pair& low, const pair& high, std::int64_t shown) {
    const auto part = (static_cast<wide>(shown) - low.shown) * (high.sim - low.sim);
    return low.sim + static_cast<std::int64_t>(part / (static_cast<wide>(high.shown) - low.shown));
}

std::int64_t clock_line::reaches(std::int64_t shown, std::int64_t from) const {
    const auto after = std::upper_bound(
        pairs_.begin(), pairs_.end(), from, [](std::int64_t sim, const pair& right) {
            return sim < right.sim;
        });
    // The last pair at or before `from`, so that the line from there is looked at too.
    auto begin = after == pairs_.begin() ? after : after - 1;
    while (begin != pairs_.end()) {
        const auto index = static_cast<std::size_t>(begin - pairs_.begin());
        const auto fall = std::upper_bound(falls_.begin(), falls_.end(), index);
        const auto end = fall == falls_.end() ? pairs_.end()
                                              : pairs_.begin() + static_cast<std::ptrdiff_t>(*fall);
        const auto found =
            std::lower_bound(begin, end, shown, [](const pair& left, std::int64_t right) {
                return left.shown < right;
            });
        if (found != end) {
            const auto exact = found == begin ? found->sim : between(*(found - 1), *found, shown);
            return std::max(exact, from);
        }
        begin = end;
    }
    if (pairs_.empty()) {
        return from;
    }
    const auto& last = pairs_.back();
    return std::max(saturated(static_cast<wide>(last.sim) + shown - last.shown), from);
}

clock_map::clock_map(const history& of) {
    for (const event& now : of.events) {
        if (now.has(field::proc) && now.has(field::local_ns)) {
            processes_[now[field::proc]].add(now.sim(), now[field::local_ns]);
        }
        if (now.has(field::store_ns)) {
            stores_[now[field::store]].add(now.sim(), now[field::store_ns]);
        }
    }
}

std::int64_t clock_map::of_process(text_id proc, std::int64_t local, std::int64_t from) const {
    return asked(processes_, proc, local, from);
}

std::int64_t clock_map::of_store(text_id store, std::int64_t shown, std::int64_t from) const {
    return asked(stores_, store, shown, from);
}

}  // namespace dibs_checker
