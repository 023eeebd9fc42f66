// SPDX-License-Identifier: Apache-2.0
// C12: once the faults are over, whoever waits for a key sees it granted within the bound, and no
// call hangs.
//
// Source: the liveness phase of TigerBeetle's simulator: faults that come and go at random heal
// what is stuck, and so hide it.
#include "checker/checks/checks.hpp"
#include "checker/waiting.hpp"
#include "checker/words.hpp"

#include <algorithm>

namespace dibs_checker {
namespace {

class progress_check {
  public:
    explicit progress_check(const subject& of) : all_(of.all) { made_.check = check_id::c12; }

    verdict run() {
        if (!all_.plan().has(field::progress_bound_ns)) {
            made_.not_judged = "the plan has no progress_bound_ns";
            return std::move(made_);
        }
        bound_ = all_.plan()[field::progress_bound_ns];
        const auto heal = std::find_if(all_.events.begin(),
                                       all_.events.end(),
                                       [](const event& now) { return now.what == op::heal; });
        if (heal == all_.events.end()) {
            made_.not_judged = "the faults were never over: there is no heal";
            return std::move(made_);
        }
        healed_ = heal->sim();
        judge_waiters();
        judge_calls();
        return std::move(made_);
    }

  private:
    void judge_waiters() {
        std::map<text_id, std::vector<moment>> granted;
        for (position at = 0; at < all_.events.size(); ++at) {
            const auto& now = all_.events[at];
            if (now.is_ok(op::acquire)) {
                granted[now[field::key]].push_back(
                    {now.sim(), moment::kind::progressed, 0, at, false});
            }
        }
        const auto faults = fault_changes_in(all_);
        for (const auto& [key, calls] : waiters_in(all_)) {
            auto moments = granted[key];
            // Before the heal everything counts as a fault.
            moments.push_back({0, moment::kind::faults, 1, nowhere, false});
            moments.push_back({healed_, moment::kind::faults, -1, nowhere, false});
            for (const auto& change : faults) {
                moments.push_back({change.sim, moment::kind::faults, change.by, nowhere, false});
            }
            for (const auto& call : calls) {
                moments.push_back({call.from, moment::kind::waiters, 1, call.inv, false});
                moments.push_back({call.until, moment::kind::waiters, -1, call.end, false});
            }
            for (const auto& waited : stretches_in(moments)) {
                ++made_.judged;
                if (waited.until - waited.from > bound_) {
                    stuck(key, calls, waited);
                }
            }
        }
    }

    void stuck(text_id key, const std::vector<open_call>& calls, const stretch& waited) {
        const auto waiting = std::find_if(calls.begin(), calls.end(), [&](const open_call& call) {
            return call.from <= waited.from && call.until > waited.from;
        });
        finding made;
        made.what = "key " + name_in(all_, key) + " was granted to nobody from " +
                    time_text(waited.from) + " to " +
                    (waited.then == nowhere ? std::string{"the end, "} : std::string{}) +
                    time_text(waited.until) + ", though ";
        if (waiting != calls.end()) {
            made.what += process_in(all_, all_.events[waiting->inv][field::proc]);
            made.events.push_back(waiting->inv);
        }
        made.what += " waited for it and the faults were over; the bound is " + time_text(bound_);
        for (const auto at : {waited.since, waited.then}) {
            if (at != nowhere) {
                made.events.push_back(at);
            }
        }
        add(std::move(made));
    }

    /// Calls that do not wait for anybody come to an end.
    void judge_calls() {
        const auto deaths = deaths_in(all_);
        for (position at = 0; at < all_.events.size(); ++at) {
            const auto& now = all_.events[at];
            const bool bounded = now.what <= op::hand_over && now[field::waits] == 0;
            if (!bounded || now.ph != phase::inv || now.sim() < healed_ ||
                deaths.contains(now[field::proc])) {
                continue;
            }
            ++made_.judged;
            const auto* end = all_.end_of(now);
            const auto until = end == nullptr ? all_.end_ns() : end->sim();
            if (until - now.sim() > bound_) {
                finding made;
                made.what = "a call of " + process_in(all_, now[field::proc]) + " on key " +
                            name_in(all_, now[field::key]) + " began " + at_text(now.sim()) +
                            " and took longer than " + time_text(bound_) +
                            ", though the faults were over";
                made.events.push_back(at);
                if (end != nullptr) {
                    made.events.push_back(all_.where(*end));
                }
                add(std::move(made));
            }
        }
    }

    void add(finding what) {
        std::sort(what.events.begin(), what.events.end());
        what.events.erase(std::unique(what.events.begin(), what.events.end()), what.events.end());
        made_.violations.add(std::move(what));
    }

    const history& all_;
    verdict made_;
    std::int64_t bound_ = 0;
    std::int64_t healed_ = 0;
};

}  // namespace

verdict check_progress(const subject& of) {
    return progress_check{of}.run();
}

}  // namespace dibs_checker
