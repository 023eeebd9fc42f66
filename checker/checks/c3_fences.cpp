// SPDX-License-Identifier: Apache-2.0
// C3: every grant of a key has a larger fence than all before it, in the store's order; processes
// are told fences that were granted, each once, and larger ones after smaller ones.
#include "checker/checks/checks.hpp"
#include "checker/ledger.hpp"
#include "checker/words.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

namespace dibs_checker {
namespace {

class fences_check {
  public:
    explicit fences_check(const subject& of) : of_(of), all_(of.all), ledger_(of.all) {
        made_.check = check_id::c3;
    }

    verdict run() {
        for (position at = 0; at < all_.events.size(); ++at) {
            const auto& now = all_.events[at];
            if (now.what == op::grant) {
                granted(at);
            } else if (now.what == op::prolong) {
                prolonged(at);
            } else if (now.ph == phase::ok && (now.what == op::acquire || now.what == op::adopt)) {
                told_[now[field::key]].push_back(at);
            }
            ledger_.take(at);
        }
        for (auto& [key, answers] : told_) {
            judge_known(key, answers);
            judge_order(key, answers);
        }
        return std::move(made_);
    }

  private:
    struct line {
        std::int64_t largest = -1;
        position by = nowhere;
        block_index used;
    };
    struct block {
        std::int64_t first;
        std::int64_t last;
        position by;
    };

    void report(std::string what, std::vector<position> events, position at) {
        report(std::move(what), std::move(events), of_.excuses(check_id::c3, at));
    }

    void report(std::string what, std::vector<position> events, bool excused) {
        std::sort(events.begin(), events.end());
        (excused ? made_.excused : made_.violations).add({std::move(what), std::move(events)});
    }

    [[nodiscard]] std::string key_text(text_id key) const { return "key " + name_in(all_, key); }

    // --- the store's side -----------------------------------------------------------------------

    void granted(position at) {
        const auto& step = all_.events[at];
        ++made_.judged;
        if (ledger_.repeated(step) != nullptr) {
            return;
        }
        const auto fence = step[field::fence];
        auto& fences = lines_[pair_of(step[field::store], step[field::key])];
        const bool exclusive = step[field::weight] == step[field::capacity];
        const auto other = overlapping(fences, fence, step[field::fence_last]);
        if (exclusive && fence <= fences.largest) {
            report(key_text(step[field::key]) + " was granted with fence " + std::to_string(fence) +
                       " after fence " + std::to_string(fences.largest),
                   {fences.by, at},
                   at);
        } else if (other != nowhere) {
            report("two grants of " + key_text(step[field::key]) + " share fence " +
                       std::to_string(fence),
                   {other, at},
                   at);
        }
        use(step[field::key], fences, fence, step[field::fence_last], at);
    }

    /// A block that grew: its new end may not reach into another one.
    void prolonged(position at) {
        const auto& step = all_.events[at];
        const auto* grant =
            ledger_.with_fence(step[field::store], step[field::key], step[field::fence]);
        if (grant == nullptr || step[field::fence_last] <= grant->fence_last) {
            return;
        }
        ++made_.judged;
        auto& fences = lines_[pair_of(step[field::store], step[field::key])];
        const auto first =
            step.has(field::new_holder) ? step[field::fence_last] : grant->fence_last + 1;
        if (const auto other = overlapping(fences, first, step[field::fence_last]);
            other != nowhere) {
            report("the block of fences of a grant of " + key_text(step[field::key]) + " grew to " +
                       std::to_string(step[field::fence_last]) + ", into that of another grant",
                   {other, at},
                   at);
        }
        use(step[field::key], fences, first, step[field::fence_last], at);
    }

    [[nodiscard]] position overlapping(const line& fences,
                                       std::int64_t first,
                                       std::int64_t last) const {
        const auto index = fences.used.at_or_below(last);
        return index == block_index::none || blocks_[index].last < first ? nowhere
                                                                         : blocks_[index].by;
    }

    void use(text_id key, line& fences, std::int64_t first, std::int64_t last, position at) {
        fences.used.add(first, blocks_.size());
        blocks_.push_back({first, last, at});
        known_[key].emplace_back(first, last);
        if (last > fences.largest) {
            fences.largest = last;
            fences.by = at;
        }
    }

    // --- the processes' side --------------------------------------------------------------------

    /// What a process was told must have been granted, if the history tells of the key's grants.
    void judge_known(text_id key, const std::vector<position>& answers) {
        const auto found = known_.find(key);
        if (found == known_.end()) {
            return;
        }
        auto& blocks = found->second;
        std::sort(blocks.begin(), blocks.end());
        std::vector<std::int64_t> reach(blocks.size());
        std::int64_t furthest = -1;
        for (std::size_t index = 0; index < blocks.size(); ++index) {
            reach[index] = furthest = std::max(furthest, blocks[index].second);
        }
        for (const auto at : answers) {
            ++made_.judged;
            const auto fence = all_.events[at][field::fence];
            const auto after =
                std::upper_bound(blocks.begin(), blocks.end(), std::pair{fence, never});
            if (after == blocks.begin() ||
                reach[static_cast<std::size_t>(after - blocks.begin()) - 1] < fence) {
                report(process_in(all_, all_.events[at][field::proc]) + " was told fence " +
                           std::to_string(fence) + " of " + key_text(key) +
                           ", which no grant carries",
                       {at},
                       at);
            }
        }
    }

    /// An acquire, or an adoption, that began after another one had ended is told a larger fence; no
    /// two are told the same one. Those of shared grants name but do not order.
    void judge_order(text_id key, const std::vector<position>& answers) {
        std::unordered_map<std::int64_t, position> seen;
        std::vector<position> exclusive;
        for (const auto at : answers) {
            const auto& now = all_.events[at];
            ++made_.judged;
            if (const auto [first, fresh] = seen.emplace(now[field::fence], at); !fresh) {
                report("fence " + std::to_string(now[field::fence]) + " of " + key_text(key) +
                           " was told twice",
                       {first->second, at},
                       at);
            }
            if (now[field::weight] == now[field::capacity]) {
                exclusive.push_back(at);
            }
        }
        // `answers` is in the order of the ends; walk the beginnings beside it.
        auto begun = exclusive;
        std::sort(begun.begin(), begun.end(), [&](position left, position right) {
            return all_.events[left].partner < all_.events[right].partner;
        });
        std::int64_t largest = -1;
        position by = nowhere;
        auto ended = exclusive.begin();
        for (const auto at : begun) {
            const auto& now = all_.events[at];
            const auto inv = now.partner;
            while (ended != exclusive.end() && all_.events[*ended].sim() < all_.events[inv].sim()) {
                if (all_.events[*ended][field::fence] > largest) {
                    largest = all_.events[*ended][field::fence];
                    by = *ended;
                }
                ++ended;
            }
            // Who believes too long hands his old block on in his process.
            if (now[field::fence] < largest) {
                report(process_in(all_, now[field::proc]) + " was told fence " +
                           std::to_string(now[field::fence]) + " of " + key_text(key) +
                           " by an acquire that began after another one had been told " +
                           std::to_string(largest),
                       {by, inv, at},
                       of_.excuses(check_id::c3, at) || of_.excuses(check_id::c2, at));
            }
        }
    }

    const subject& of_;
    const history& all_;
    ledger ledger_;
    verdict made_;
    std::unordered_map<std::uint64_t, line> lines_;
    std::vector<block> blocks_;
    std::unordered_map<text_id, std::vector<std::pair<std::int64_t, std::int64_t>>> known_;
    std::map<text_id, std::vector<position>> told_;
};

}  // namespace

verdict check_fences(const subject& of) {
    return fences_check{of}.run();
}

}  // namespace dibs_checker
