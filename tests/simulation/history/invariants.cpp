// SPDX-License-Identifier: Apache-2.0
#include "simulation/history/invariants.hpp"

#include <algorithm>

namespace dibs::simulation {

void invariants::break_law(bool excused, std::string text) {
    if (excused) {
        ++excused_;
    } else {
        broken_.push_back(std::move(text));
    }
}

void invariants::granted(const std::string& key,
                         const core::holder_id& holder,
                         core::fence_block fences,
                         core::store_instant now,
                         core::store_instant expires) {
    auto& kept = keys_[key];
    const bool again = kept.held && kept.holder == holder && now < kept.expires;
    if (!again) {
        ++grants_;
        if (kept.held && now < kept.expires) {
            break_law(overlaps_excused_, "two grants of " + key + " at once");
        }
        if (fences.first <= kept.last) {
            break_law(fences_excused_,
                      "the fence of " + key + " did not rise: " + std::to_string(fences.first) +
                          " after " + std::to_string(kept.last));
        }
    }
    kept.held = true;
    kept.holder = holder;
    kept.expires = expires;
    kept.last = std::max(kept.last, fences.last);
}

void invariants::prolonged(const std::string& key,
                           const core::holder_id& before,
                           const core::holder_id& after,
                           core::fence_block fences,
                           core::store_instant now,
                           core::store_instant expires) {
    auto& kept = keys_[key];
    if (!kept.held || kept.holder != before || now >= kept.expires) {
        break_law(overlaps_excused_, "a renewal of " + key + " by one who does not hold it");
    }
    kept.held = true;
    kept.holder = after;
    kept.expires = expires;
    kept.last = std::max(kept.last, fences.last);
}

void invariants::ended(const std::string& key, const core::holder_id& holder) {
    auto& kept = keys_[key];
    if (kept.holder == holder) {
        kept.held = false;
    }
}

}  // namespace dibs::simulation
