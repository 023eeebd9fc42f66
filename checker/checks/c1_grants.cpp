// SPDX-License-Identifier: Apache-2.0
// C1: at the moment of each grant the unexpired grants of its key leave room for it, by the clock
// of the store that gave it, and no operator has the key on hold.
#include "checker/checks/checks.hpp"
#include "checker/ledger.hpp"
#include "checker/words.hpp"

#include <algorithm>

namespace dibs_checker {
namespace {

class grants_check {
  public:
    explicit grants_check(const subject& of) : of_(of), ledger_(of.all) {
        made_.check = check_id::c1;
    }

    verdict run() {
        for (position at = 0; at < of_.all.events.size(); ++at) {
            const auto& step = of_.all.events[at];
            if (step.what == op::grant) {
                ++made_.judged;
                if (ledger_.repeated(step) == nullptr) {
                    judge_hold(at);
                    judge(at, nullptr, step[field::weight], step[field::capacity]);
                }
            } else if (step.what == op::prolong) {
                const auto* mine =
                    ledger_.with_fence(step[field::store], step[field::key], step[field::fence]);
                // A prolonged grant that had ended is there again, beside whoever came since.
                if (mine != nullptr && !mine->alive(step[field::store_ns])) {
                    ++made_.judged;
                    judge(at, mine, mine->weight, mine->capacity);
                }
            }
            ledger_.take(at);
        }
        return std::move(made_);
    }

  private:
    void judge_hold(position at) {
        const auto& step = of_.all.events[at];
        const auto* hold = ledger_.hold_on(step[field::store], step[field::key]);
        if (hold == nullptr || step[field::store_ns] >= hold->until) {
            return;
        }
        finding found;
        found.what = "the store granted key " + name_in(of_.all, step[field::key]) + " to " +
                     name_in(of_.all, step[field::holder]) + " when its clock showed " +
                     time_text(step[field::store_ns]) + "; an operator has the key on hold until " +
                     time_text(hold->until);
        found.events = {hold->set, at};
        (of_.excuses(check_id::c1, at) ? made_.excused : made_.violations).add(std::move(found));
    }

    void judge(position at, const stored_grant* self, std::int64_t weight, std::int64_t capacity) {
        const auto& step = of_.all.events[at];
        const auto now = step[field::store_ns];
        const stored_grant* longest = nullptr;
        std::int64_t taken = 0;
        finding found;
        for (const auto index : ledger_.candidates(step[field::store], step[field::key])) {
            const auto& other = ledger_.grant(index);
            if (&other == self || !other.alive(now)) {
                continue;
            }
            taken += other.weight;
            // A capacity of 1 is for one holder alone, whatever others divide the key into.
            capacity = std::min(capacity, other.capacity);
            found.events.push_back(other.prolonged);
            if (longest == nullptr || other.expires > longest->expires) {
                longest = &other;
            }
        }
        if (longest == nullptr || taken + weight <= capacity) {
            return;
        }
        if (capacity == 1) {
            found.events = {longest->prolonged};
        }
        found.events.push_back(at);
        const auto& all = of_.all;
        found.what = "the store " +
                     std::string{step.what == op::grant ? "granted" : "brought back a grant of"} +
                     " key " + name_in(all, step[field::key]) + " to " +
                     name_in(all, step[field::holder]) + " (fence " +
                     std::to_string(step[field::fence]) + ") when its clock showed " +
                     time_text(now) + "; the grant to " + name_in(all, longest->holder) +
                     " (fence " + std::to_string(longest->fence) + ") " +
                     (longest->forgotten ? "was forgotten, but " : "") + "counts until " +
                     time_text(longest->expires);
        (of_.excuses(check_id::c1, at) ? made_.excused : made_.violations).add(std::move(found));
    }

    const subject& of_;
    ledger ledger_;
    verdict made_;
};

}  // namespace

verdict check_grants(const subject& of) {
    return grants_check{of}.run();
}

}  // namespace dibs_checker
