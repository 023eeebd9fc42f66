// SPDX-License-Identifier: Apache-2.0
// C10: how often the job of a slot begins and ends is what its policy allows.
#include "checker/checks/checks.hpp"
#include "checker/words.hpp"

#include <algorithm>
#include <map>

namespace dibs_checker {
namespace {

struct slot_runs {
    position told = nowhere;
    std::vector<position> starts;
};

class slots_check {
  public:
    explicit slots_check(const subject& of) : all_(of.all) { made_.check = check_id::c10; }

    verdict run() {
        bool healed = false;
        std::map<text_id, slot_runs> slots;
        for (position at = 0; at < all_.events.size(); ++at) {
            const auto& now = all_.events[at];
            if (now.what == op::slot) {
                slots[now[field::key]].told = at;
            } else if (now.is_inv(op::job)) {
                slots[now[field::key]].starts.push_back(at);
            }
            healed = healed || now.what == op::heal;
        }
        for (const auto& [key, runs] : slots) {
            ++made_.judged;
            judge_starts(key, runs);
            judge_ends(key, runs);
            if (healed) {
                judge_completion(key, runs);
            }
        }
        return std::move(made_);
    }

  private:
    [[nodiscard]] bool done(position start) const {
        const auto* end = all_.end_of(all_.events[start]);
        return end != nullptr && end->ph == phase::ok;
    }

    /// Or it is unknown whether that was taken down.
    [[nodiscard]] bool may_be_done(position start) const {
        const auto* end = all_.end_of(all_.events[start]);
        return end != nullptr && (end->ph == phase::ok || end->ph == phase::info);
    }

    /// Starts that the policy does not allow.
    void judge_starts(text_id key, const slot_runs& runs) {
        const auto& told = all_.events[runs.told];
        const bool at_most_once = all_.text(told, field::policy) == "at_most_once";
        const auto attempts = at_most_once ? 1 : told[field::attempts];
        if (attempts > 0 && static_cast<std::int64_t>(runs.starts.size()) > attempts) {
            std::vector<position> shown(runs.starts.begin(), runs.starts.begin() + attempts + 1);
            report("the job of slot " + name_in(all_, key) + " began " +
                       std::to_string(runs.starts.size()) + " times; " +
                       (at_most_once ? std::string{"at most once is its policy"}
                                     : "it may be tried " + std::to_string(attempts) + " times"),
                   std::move(shown));
            return;
        }
        position first_done = nowhere;
        for (const auto start : runs.starts) {
            if (first_done != nowhere && all_.events[first_done].sim() < all_.events[start].sim()) {
                report("the job of slot " + name_in(all_, key) + " began again in " +
                           process_in(all_, all_.events[start][field::proc]) +
                           " after it had been done",
                       {all_.events[first_done].partner, first_done, start});
                return;
            }
            if (done(start) && (first_done == nowhere || all_.events[start].partner < first_done)) {
                first_done = all_.events[start].partner;
            }
        }
    }

    /// The store takes down one success.
    void judge_ends(text_id key, const slot_runs& runs) {
        std::vector<position> ends;
        for (const auto start : runs.starts) {
            if (done(start)) {
                ends.push_back(all_.events[start].partner);
            }
        }
        if (ends.size() > 1) {
            std::sort(ends.begin(), ends.end());
            ends.resize(2);
            report("the job of slot " + name_in(all_, key) + " was taken down as done twice",
                   std::move(ends));
        }
    }

    void judge_completion(text_id key, const slot_runs& runs) {
        const auto& told = all_.events[runs.told];
        if (told[field::must_complete] == 0 || all_.text(told, field::policy) == "at_most_once" ||
            std::any_of(runs.starts.begin(), runs.starts.end(), [&](position start) {
                return may_be_done(start);
            })) {
            return;
        }
        const auto attempts = told[field::attempts];
        if (attempts > 0 && static_cast<std::int64_t>(runs.starts.size()) >= attempts) {
            return;
        }
        auto shown = runs.starts;
        shown.insert(shown.begin(), runs.told);
        report(
            "the job of slot " + name_in(all_, key) +
                " was never done, though the faults were over and it could have been tried again",
            std::move(shown));
    }

    void report(std::string what, std::vector<position> events) {
        std::sort(events.begin(), events.end());
        made_.violations.add({std::move(what), std::move(events)});
    }

    const history& all_;
    verdict made_;
};

}  // namespace

verdict check_slots(const subject& of) {
    return slots_check{of}.run();
}

}  // namespace dibs_checker
