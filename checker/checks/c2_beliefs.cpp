// SPDX-License-Identifier: Apache-2.0
// C2: at no moment of true time do more processes believe to hold a key than may.
#include "checker/checks/checks.hpp"
#include "checker/words.hpp"

#include <algorithm>
#include <unordered_map>

namespace dibs_checker {
namespace {

std::string described(const history& all, const belief& which) {
    return process_in(all, which.proc) + " (fence " + std::to_string(which.fence) + ") from " +
           time_text(which.from) + " to " + time_text(which.until);
}

finding overlap(const history& all, const std::vector<const belief*>& before, const belief& late) {
    finding made;
    made.what = "key " + name_in(all, late.key) + " was believed to be held by ";
    for (const auto* which : before) {
        made.what += described(all, *which) + ", and by ";
        made.events.push_back(which->begin);
        made.events.push_back(which->end != nowhere ? which->end : which->extended);
    }
    made.what += described(all, late);
    made.events.push_back(late.begin);
    std::sort(made.events.begin(), made.events.end());
    made.events.erase(std::unique(made.events.begin(), made.events.end()), made.events.end());
    return made;
}

void judge_key(const subject& of, std::vector<const belief*> sorted, verdict& made) {
    std::stable_sort(sorted.begin(), sorted.end(), [](const belief* left, const belief* right) {
        return left->from < right->from;
    });
    std::vector<const belief*> current;
    for (const auto* next : sorted) {
        if (next->until <= next->from) {
            continue;
        }
        ++made.judged;
        // Ends and beginnings of one instant may have come in either order.
        std::erase_if(current, [&](const belief* which) { return which->until <= next->from; });
        std::int64_t taken = next->weight;
        // A capacity of 1 is for one holder alone, whatever others divide the key into.
        std::int64_t capacity = next->capacity;
        for (const auto* which : current) {
            taken += which->weight;
            capacity = std::min(capacity, which->capacity);
        }
        if (!current.empty() && taken > capacity) {
            auto shown = current;
            if (capacity == 1) {
                shown = {*std::max_element(
                    current.begin(), current.end(), [](const belief* left, const belief* right) {
                        return left->until < right->until;
                    })};
            }
            (of.excuses(check_id::c2, next->begin) ? made.excused : made.violations)
                .add(overlap(of.all, shown, *next));
        }
        current.push_back(next);
    }
}

}  // namespace

verdict check_beliefs(const subject& of) {
    verdict made;
    made.check = check_id::c2;
    std::vector<text_id> order;
    std::unordered_map<text_id, std::vector<const belief*>> keys;
    for (const auto& which : of.beliefs) {
        auto& list = keys[which.key];
        if (list.empty()) {
            order.push_back(which.key);
        }
        list.push_back(&which);
    }
    for (const auto key : order) {
        judge_key(of, std::move(keys[key]), made);
    }
    return made;
}

}  // namespace dibs_checker
