// SPDX-License-Identifier: Apache-2.0
// C7: a step of one holder changes that holder's live grant or nothing; what lies in the store is
// what its steps made of it.
#include "checker/checks/checks.hpp"
#include "checker/ledger.hpp"
#include "checker/words.hpp"

#include <algorithm>

namespace dibs_checker {
namespace {

class foreign_check {
  public:
    explicit foreign_check(const subject& of) : all_(of.all), ledger_(of.all) {
        made_.check = check_id::c7;
    }

    verdict run() {
        for (position at = 0; at < all_.events.size(); ++at) {
            const auto& step = all_.events[at];
            switch (step.what) {
                case op::prolong:
                    prolonged(at);
                    break;
                case op::end:
                    ended(at);
                    break;
                case op::refuse:
                    refused(at);
                    break;
                case op::stored:
                    stored(at);
                    break;
                default:
                    break;
            }
            ledger_.take(at);
        }
        return std::move(made_);
    }

  private:
    [[nodiscard]] const stored_grant* named(const event& step) const {
        return ledger_.with_fence(step[field::store], step[field::key], step[field::fence]);
    }

    void prolonged(position at) {
        const auto& step = all_.events[at];
        ++made_.judged;
        const auto* grant = named(step);
        if (grant == nullptr) {
            report("a renewal by " + holder_text(step) + " prolonged fence " + fence_text(step) +
                       " of " + key_text(step) + ", which was never granted",
                   {at});
        } else if (grant->holder != step[field::holder]) {
            report("a renewal by " + holder_text(step) + " prolonged the grant of " +
                       name_in(all_, grant->holder) + " (fence " + fence_text(step) + ") on " +
                       key_text(step),
                   {grant->prolonged, at});
        } else if (grant->ended != nowhere && !grant->forgotten) {
            report("a renewal by " + holder_text(step) + " prolonged its grant on " +
                       key_text(step) + " (fence " + fence_text(step) + ") after it had ended",
                   {grant->ended, at});
        } else if (!grant->alive(step[field::store_ns]) && all_.text(step, field::why) != "copy") {
            report("a renewal by " + holder_text(step) + " prolonged its grant on " +
                       key_text(step) + " (fence " + fence_text(step) +
                       ") when the store's clock showed " + time_text(step[field::store_ns]) +
                       "; it had expired at " + time_text(grant->expires),
                   {grant->prolonged, at});
        }
    }

    void ended(position at) {
        const auto& step = all_.events[at];
        const auto& why = all_.text(step, field::why);
        ++made_.judged;
        const auto* grant = named(step);
        if (grant == nullptr) {
            report("fence " + fence_text(step) + " of " + key_text(step) +
                       " ended, and was never granted",
                   {at});
            return;
        }
        if (why == "expired") {
            if (grant->alive(step[field::store_ns]) && !grant->forgotten) {
                report("the grant of " + name_in(all_, grant->holder) + " on " + key_text(step) +
                           " (fence " + fence_text(step) + ") was ended as expired at " +
                           time_text(step[field::store_ns]) + " by the store's clock, before its " +
                           "expiry at " + time_text(grant->expires),
                       {grant->prolonged, at});
            }
            return;
        }
        if (why != "released") {
            return;
        }
        if (!step.has(field::holder) || grant->holder != step[field::holder]) {
            report("a release by " +
                       (step.has(field::holder) ? holder_text(step) : std::string{"nobody"}) +
                       " ended the grant of " + name_in(all_, grant->holder) + " (fence " +
                       fence_text(step) + ") on " + key_text(step),
                   {grant->prolonged, at});
        } else if (grant->ended != nowhere && !grant->forgotten) {
            report("a release by " + holder_text(step) + " ended its grant on " + key_text(step) +
                       " (fence " + fence_text(step) + ") a second time",
                   {grant->ended, at});
        }
    }

    /// A holder whose grant lives is not told that it holds nothing.
    void refused(position at) {
        const auto& step = all_.events[at];
        if (all_.text(step, field::answer) != "not_held") {
            return;
        }
        ++made_.judged;
        const auto* grant = ledger_.of_holder(
            step[field::store], step[field::key], step[field::holder], step[field::store_ns]);
        if (grant != nullptr) {
            report("the store told " + holder_text(step) + " that it does not hold " +
                       key_text(step) + "; nothing had ended its grant (fence " +
                       std::to_string(grant->fence) + ")",
                   {grant->prolonged, at});
        }
    }

    void stored(position at) {
        const auto& step = all_.events[at];
        ++made_.judged;
        const stored_grant* live = nullptr;
        for (const auto index : ledger_.candidates(step[field::store], step[field::key])) {
            const auto& grant = ledger_.grant(index);
            if (grant.ended == nowhere && grant.alive(step[field::store_ns])) {
                live = &grant;
            }
        }
        const bool told = step.has(field::holder);
        if (!told && live == nullptr) {
            return;
        }
        if (told && live != nullptr && live->holder == step[field::holder] &&
            live->fence == step[field::fence] && live->expires == step[field::store_expires_ns]) {
            return;
        }
        finding made;
        made.what = key_text(step) + " lies in the store as " +
                    (told ? "held by " + holder_text(step) + " with fence " + fence_text(step) +
                                " until " + time_text(step[field::store_expires_ns])
                          : std::string{"free"}) +
                    "; its steps made it " +
                    (live != nullptr
                         ? "held by " + name_in(all_, live->holder) + " with fence " +
                               std::to_string(live->fence) + " until " + time_text(live->expires)
                         : std::string{"free"});
        if (live != nullptr) {
            made.events.push_back(live->prolonged);
        }
        made.events.push_back(at);
        made_.violations.add(std::move(made));
    }

    [[nodiscard]] std::string holder_text(const event& step) const {
        return name_in(all_, step[field::holder]);
    }
    [[nodiscard]] std::string key_text(const event& step) const {
        return "key " + name_in(all_, step[field::key]);
    }
    [[nodiscard]] static std::string fence_text(const event& step) {
        return std::to_string(step[field::fence]);
    }

    void report(std::string what, std::vector<position> events) {
        made_.violations.add({std::move(what), std::move(events)});
    }

    const history& all_;
    ledger ledger_;
    verdict made_;
};

}  // namespace

verdict check_foreign_effects(const subject& of) {
    return foreign_check{of}.run();
}

}  // namespace dibs_checker
