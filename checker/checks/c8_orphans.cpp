// SPDX-License-Identifier: Apache-2.0
// C8: a grant that no caller was told of, or that its caller has given up, is not kept alive; and
// what a client has settled does not come back.
#include "checker/checks/checks.hpp"
#include "checker/ledger.hpp"
#include "checker/words.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace dibs_checker {
namespace {

/// What processes made of the fences of one key.
struct told_fences {
    std::map<std::int64_t, position> known;              ///< told to a caller, whenever
    std::map<std::int64_t, position> given_up;           ///< the last end of a lease
    std::unordered_map<std::int64_t, text_id> given_to;  ///< first fences, and the last holder
};

class orphans_check {
  public:
    explicit orphans_check(const subject& of) : of_(of), all_(of.all), ledger_(of.all) {
        made_.check = check_id::c8;
    }

    verdict run() {
        // Who was told of a grant may be told after its first renewal: look ahead for it.
        for (position at = 0; at < all_.events.size(); ++at) {
            const auto& now = all_.events[at];
            if (now.ph == phase::ok && (now.what == op::acquire || now.what == op::adopt)) {
                keys_[now[field::key]].known.emplace(now[field::fence], at);
            }
        }
        for (position at = 0; at < all_.events.size(); ++at) {
            take(at);
            ledger_.take(at);
        }
        return std::move(made_);
    }

  private:
    void take(position at) {
        const auto& now = all_.events[at];
        switch (now.what) {
            case op::release:
                if (now.ph != phase::inv) {
                    keys_[now[field::key]].given_up[now[field::fence]] = at;
                }
                break;
            case op::lost:
                keys_[now[field::key]].given_up[now[field::fence]] = at;
                break;
            case op::hand_over:
                if (now.ph == phase::ok) {
                    keys_[now[field::key]].given_up[now[field::fence]] = at;
                }
                break;
            case op::adopt:
                if (now.ph == phase::ok) {
                    keys_[now[field::key]].given_up.erase(now[field::fence]);
                }
                break;
            case op::settled:
                settled(at);
                break;
            case op::grant:
                granted(at);
                break;
            case op::prolong:
                prolonged(at);
                break;
            default:
                break;
        }
    }

    void settled(position at) {
        const auto& now = all_.events[at];
        ++made_.judged;
        settled_.emplace(pair_of(now[field::key], now[field::holder]), at);
        for (const auto store : stores_) {
            for (const auto index : ledger_.candidates(store, now[field::key])) {
                const auto& grant = ledger_.grant(index);
                if (grant.holder != now[field::holder] || grant.ended != nowhere) {
                    continue;
                }
                const auto expires =
                    of_.clocks.of_store(store, grant.expires, all_.events[grant.prolonged].sim());
                if (expires > now.sim()) {
                    report(process_in(all_, now[field::proc]) + " regards its acquire of key " +
                               name_in(all_, now[field::key]) + " as " +
                               name_in(all_, now[field::holder]) +
                               " as settled; the store still has it granted",
                           {grant.prolonged, at},
                           of_.excuses(check_id::c1, at));
                }
            }
        }
    }

    void granted(position at) {
        const auto& step = all_.events[at];
        if (std::find(stores_.begin(), stores_.end(), step[field::store]) == stores_.end()) {
            stores_.push_back(step[field::store]);
        }
        // A store that forgets, with a clock that was set back, gives a fence twice, perhaps one that
        // an adoption, or the end of a block, had brought.
        auto& told = keys_[step[field::key]];
        const auto [first, is_new] = told.given_to.emplace(step[field::fence], step[field::holder]);
        if (is_new || first->second != step[field::holder]) {
            first->second = step[field::holder];
            told.given_up.erase(told.given_up.lower_bound(step[field::fence]),
                                told.given_up.upper_bound(step[field::fence_last]));
        }
        const auto found = settled_.find(pair_of(step[field::key], step[field::holder]));
        if (found != settled_.end()) {
            // A store whose clock is set back, or that forgets, takes what it would have refused.
            report("key " + name_in(all_, step[field::key]) + " was granted to " +
                       name_in(all_, step[field::holder]) +
                       " after its client had settled that acquire",
                   {found->second, at},
                   of_.excuses(check_id::c1, at));
        }
        if (!is_told(step[field::key], step[field::fence], step[field::fence_last])) {
            ++made_.judged;
        }
    }

    [[nodiscard]] bool is_told(text_id key, std::int64_t first, std::int64_t last) const {
        const auto found = keys_.find(key);
        if (found == keys_.end()) {
            return false;
        }
        const auto at_least = found->second.known.lower_bound(first);
        return at_least != found->second.known.end() && at_least->first <= last;
    }

    void prolonged(position at) {
        const auto& step = all_.events[at];
        const auto* grant =
            ledger_.with_fence(step[field::store], step[field::key], step[field::fence]);
        if (grant == nullptr || all_.text(step, field::why) == "copy") {
            return;  // no request of anybody's
        }
        ++made_.judged;
        if (!is_told(grant->key, grant->fence, grant->fence_last)) {
            // What had left before the grant was meant for an earlier one of the same holder, which
            // a late message has brought about again: nobody keeps it alive.
            if (step.has(field::sent_sim_ns) &&
                step[field::sent_sim_ns] <= all_.events[grant->given].sim()) {
                return;
            }
            report("the grant of key " + name_in(all_, grant->key) + " to " +
                       name_in(all_, grant->holder) + " (fence " + std::to_string(grant->fence) +
                       ") was renewed, and no caller was ever told of it",
                   {grant->given, at});
            return;
        }
        if (step.has(field::sent_sim_ns) && !step.has(field::new_holder)) {
            judge_given_up(at, *grant);
        }
    }

    /// No renewal leaves once every lease of the grant was given up.
    void judge_given_up(position at, const stored_grant& grant) {
        const auto& step = all_.events[at];
        const auto& told = keys_[grant.key];
        position last = nowhere;
        for (auto known = told.known.lower_bound(grant.fence);
             known != told.known.end() && known->first <= grant.fence_last;
             ++known) {
            if (known->second > at) {
                continue;
            }
            const auto over = told.given_up.find(known->first);
            if (over == told.given_up.end()) {
                return;
            }
            last = last == nowhere ? over->second : std::max(last, over->second);
        }
        if (last != nowhere && all_.events[last].sim() < step[field::sent_sim_ns]) {
            report("a renewal of key " + name_in(all_, grant.key) + " (fence " +
                       std::to_string(grant.fence) + ") left " + at_text(step[field::sent_sim_ns]) +
                       ", after its lease had ended",
                   {last, at});
        }
    }

    void report(std::string what, std::vector<position> events, bool excused = false) {
        std::sort(events.begin(), events.end());
        (excused ? made_.excused : made_.violations).add({std::move(what), std::move(events)});
    }

    const subject& of_;
    const history& all_;
    ledger ledger_;
    verdict made_;
    std::unordered_map<text_id, told_fences> keys_;
    std::unordered_map<std::uint64_t, position> settled_;
    std::vector<text_id> stores_;
};

}  // namespace

verdict check_orphans(const subject& of) {
    return orphans_check{of}.run();
}

}  // namespace dibs_checker
