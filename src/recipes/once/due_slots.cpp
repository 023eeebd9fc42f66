// SPDX-License-Identifier: Apache-2.0
#include "recipes/once/due_slots.hpp"

#include <algorithm>

namespace dibs::recipes {

namespace {

constexpr std::size_t counted_most = 100;

bool is_over(const slot_record& kept, bool held, bool at_most_once) {
    switch (kept.state) {
        case slot_state::done:
            return true;
        case slot_state::failed:
            return kept.next_at_ms == 0;
        case slot_state::started:
        case slot_state::interrupted:
            return at_most_once && !held;
        case slot_state::skipped:
            break;
    }
    return false;
}

due_slots all_of(const schedule& plan,
                 const slot& now,
                 const std::vector<known_slot>& known,
                 std::size_t most) {
    // What a host whose clock is ahead has run lies after now, and says nothing of what was missed.
    const known_slot* newest = nullptr;
    for (const auto& one : known) {
        if (one.begin <= now.begin && (newest == nullptr || newest->begin < one.begin)) {
            newest = &one;
        }
    }
    due_slots due;
    if (newest == nullptr) {
        due.slots.push_back(now);
        return due;
    }
    for (auto at = now; at.begin > newest->begin; at = plan.before(at)) {
        if (due.slots.size() < most) {
            due.slots.push_back(at);
        } else if (++due.left_out >= counted_most * most) {
            break;
        }
    }
    std::vector<slot> unfinished;
    for (const auto& one : known) {
        // Another schedule may have left it, under a name that this one does not give.
        if (one.begin > now.begin || one.over) {
            continue;
        }
        if (auto same = plan.at(one.begin, {}); same.name == one.name) {
            unfinished.push_back(std::move(same));
        }
    }
    std::sort(unfinished.begin(), unfinished.end(), [](const slot& one, const slot& other) {
        return one.begin > other.begin;
    });
    for (auto& one : unfinished) {
        if (due.slots.size() < most) {
            due.slots.push_back(std::move(one));
        } else {
            ++due.left_out;
        }
    }
    if (due.slots.empty()) {
        // It is over, and what became of it is its record's to say: nothing was missed.
        due.slots.push_back(now);
    }
    std::reverse(due.slots.begin(), due.slots.end());
    return due;
}

}  // namespace

std::optional<known_slot> known_slot_of(const slot_record& kept, bool held, bool at_most_once) {
    if (!kept.begin_ms || kept.state == slot_state::skipped) {
        return std::nullopt;
    }
    return known_slot{kept.slot,
                      core::wall_instant{core::milliseconds{*kept.begin_ms}},
                      is_over(kept, held, at_most_once)};
}

due_slots find_due(const schedule& plan,
                   const slot& now,
                   core::wall_instant clock,
                   const std::vector<known_slot>& known,
                   const due_terms& terms) {
    switch (terms.policy) {
        case missed_slots::all:
            return all_of(plan, now, known, terms.most);
        case missed_slots::none: {
            const bool begun = std::any_of(known.begin(), known.end(), [&](const known_slot& one) {
                return one.name == now.name;
            });
            if (!begun && clock - now.begin > terms.late) {
                return {};
            }
            break;
        }
        case missed_slots::last:
            break;
    }
    due_slots due;
    due.slots.push_back(now);
    return due;
}

}  // namespace dibs::recipes
