// SPDX-License-Identifier: Apache-2.0
#include "checker/doubled_fences.hpp"

#include <set>
#include <utility>

namespace dibs_checker {

doubled_fences::doubled_fences(const subject& of) : all_(of.all) {
    if (of.first_excuse(check_id::c3) == nowhere) {
        return;
    }
    std::set<std::pair<text_id, std::int64_t>> told;
    for (position at = 0; at < all_.events.size(); ++at) {
        const auto& now = all_.events[at];
        if (now.ph != phase::ok || (now.what != op::acquire && now.what != op::adopt)) {
            continue;
        }
        const bool fresh = told.emplace(now[field::key], now[field::fence]).second;
        if (!fresh && of.excuses(check_id::c3, at)) {
            numbers_.insert(now[field::fence]);
        }
    }
}

position doubled_fences::shared_by(const std::vector<position>& updates) const {
    std::unordered_set<std::int64_t> borne;
    for (const auto at : updates) {
        const auto& now = all_.events[at];
        if (now.has(field::fence) && numbers_.contains(now[field::fence]) &&
            !borne.insert(now[field::fence]).second) {
            return at;
        }
    }
    return nowhere;
}

}  // namespace dibs_checker
