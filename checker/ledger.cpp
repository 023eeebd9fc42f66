// SPDX-License-Identifier: Apache-2.0
#include "checker/ledger.hpp"

#include <algorithm>

namespace dibs_checker {

void ledger::take(position at) {
    const auto& step = all_.events[at];
    if (step.what == op::grant) {
        auto& key = keys_[pair_of(step[field::store], step[field::key])];
        if (const auto* again = repeated(step)) {
            auto& grant = grants_[static_cast<std::size_t>(again - grants_.data())];
            grant.expires = step[field::store_expires_ns];
            grant.fence_last = std::max(grant.fence_last, step[field::fence_last]);
            grant.prolonged = at;
            return;
        }
        // The new record takes the place of what had expired, for good: a clock that is set back
        // does not bring it to life again.
        std::erase_if(key.open, [&](std::size_t index) {
            return !grants_[index].alive(step[field::store_ns]);
        });
        stored_grant made;
        made.store = step[field::store];
        made.key = step[field::key];
        made.holder = step[field::holder];
        made.fence = step[field::fence];
        made.fence_last = step[field::fence_last];
        made.weight = step[field::weight];
        made.capacity = step[field::capacity];
        made.expires = step[field::store_expires_ns];
        made.given = at;
        made.prolonged = at;
        key.open.push_back(grants_.size());
        key.fences.add(made.fence, grants_.size());
        grants_.push_back(made);
    } else if (step.what == op::prolong) {
        if (auto* grant = find(step)) {
            grant->expires = step[field::store_expires_ns];
            grant->fence_last = std::max(grant->fence_last, step[field::fence_last]);
            grant->prolonged = at;
            if (step.has(field::new_holder)) {
                grant->holder = step[field::new_holder];
                // Its fence is one alone; what lies between may be of grants that were forgotten.
                keys_[pair_of(step[field::store], step[field::key])].fences.add(
                    step[field::fence_last], static_cast<std::size_t>(grant - grants_.data()));
            }
        }
    } else if (step.what == op::block) {
        holds_[pair_of(step[field::store], step[field::key])] = {step[field::store_expires_ns], at};
    } else if (step.what == op::end) {
        if (auto* grant = find(step)) {
            if (grant->ended == nowhere) {
                grant->ended = at;
                grant->forgotten = all_.text(step, field::why) == "lost";
            }
        }
    }
}

const std::vector<std::size_t>& ledger::candidates(text_id store, text_id key) const {
    static const std::vector<std::size_t> nothing;
    const auto found = keys_.find(pair_of(store, key));
    return found == keys_.end() ? nothing : found->second.open;
}

const ledger::hold* ledger::hold_on(text_id store, text_id key) const {
    const auto found = holds_.find(pair_of(store, key));
    return found == holds_.end() ? nullptr : &found->second;
}

const stored_grant* ledger::with_fence(text_id store, text_id key, std::int64_t fence) const {
    const auto found = keys_.find(pair_of(store, key));
    if (found == keys_.end()) {
        return nullptr;
    }
    const auto index = found->second.fences.at_or_below(fence);
    if (index == block_index::none || grants_[index].fence_last < fence) {
        return nullptr;
    }
    return &grants_[index];
}

stored_grant* ledger::find(const event& step) {
    const auto* found = with_fence(step[field::store], step[field::key], step[field::fence]);
    return found == nullptr ? nullptr : &grants_[static_cast<std::size_t>(found - grants_.data())];
}

const stored_grant* ledger::of_holder(text_id store,
                                      text_id key,
                                      text_id holder,
                                      std::int64_t now) const {
    for (const auto index : candidates(store, key)) {
        const auto& grant = grants_[index];
        if (grant.holder == holder && grant.ended == nowhere && grant.alive(now)) {
            return &grant;
        }
    }
    return nullptr;
}

const stored_grant* ledger::repeated(const event& step) const {
    const auto* mine =
        of_holder(step[field::store], step[field::key], step[field::holder], step[field::store_ns]);
    return mine != nullptr && mine->fence == step[field::fence] ? mine : nullptr;
}

}  // namespace dibs_checker
