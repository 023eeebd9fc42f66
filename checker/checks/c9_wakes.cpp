// SPDX-License-Identifier: Apache-2.0
// C9: a process that is notified, or that waits for a key that became free, asks the store within
// the plan's bounds. Judged while no fault is at work; the bound begins anew when one ends.
#include "checker/checks/checks.hpp"
#include "checker/ledger.hpp"
#include "checker/waiting.hpp"
#include "checker/words.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace dibs_checker {
namespace {

class wakes_check {
  public:
    explicit wakes_check(const subject& of)
        : of_(of), all_(of.all), faults_(fault_changes_in(of.all)), waiters_(waiters_in(of.all)) {
        made_.check = check_id::c9;
        int open = 0;
        for (const auto& change : faults_) {
            at_work_.push_back(open += change.by);
        }
    }

    verdict run() {
        if (!has_wake_bound() && !has_poll_bound()) {
            made_.not_judged = "the plan has neither wake_bound_ns nor poll_bound_ns";
            return std::move(made_);
        }
        collect();
        for (const auto& [key, calls] : waiters_) {
            if (!shared_.contains(key)) {
                judge_free(key, calls);
            }
        }
        if (has_wake_bound()) {
            judge_notified();
        }
        return std::move(made_);
    }

  private:
    [[nodiscard]] bool has_wake_bound() const { return all_.plan().has(field::wake_bound_ns); }
    [[nodiscard]] bool has_poll_bound() const { return all_.plan().has(field::poll_bound_ns); }

    void collect() {
        ledger replayed{all_};
        for (position at = 0; at < all_.events.size(); ++at) {
            replayed.take(at);
            const auto& now = all_.events[at];
            if (now.what == op::tried) {
                moments_[now[field::key]].push_back(
                    {now.sim(), moment::kind::progressed, 0, at, false});
                asked_[pair_of(now[field::proc], now[field::key])].push_back(at);
            } else if ((now.what == op::acquire && now.ph != phase::inv) || now.is_ok(op::adopt)) {
                // Who adopts it meanwhile has it.
                asked_[pair_of(now[field::proc], now[field::key])].push_back(at);
            }
        }
        collect_holds();
        for (const auto& grant : replayed.grants()) {
            if (grant.capacity > 1) {
                shared_.emplace(grant.key, true);
            }
            auto& moments = moments_[grant.key];
            const auto& given = all_.events[grant.given];
            moments.push_back({given.sim(), moment::kind::taken, 1, grant.given, false});
            const auto expires =
                of_.clocks.of_store(grant.store, grant.expires, all_.events[grant.prolonged].sim());
            if (grant.ended != nowhere && !grant.forgotten &&
                all_.events[grant.ended].sim() <= expires) {
                const auto& end = all_.events[grant.ended];
                moments.push_back({end.sim(),
                                   moment::kind::taken,
                                   -1,
                                   grant.ended,
                                   all_.text(end, field::why) == "released"});
            } else if (expires <= all_.end_ns()) {
                moments.push_back({expires, moment::kind::taken, -1, grant.prolonged, false});
            }
        }
    }

    /// A key on hold is not free. Nobody is notified when a hold is over.
    void collect_holds() {
        std::unordered_map<std::uint64_t, position> last;
        const auto add_hold = [&](position at, std::int64_t next) {
            const auto& set = all_.events[at];
            const auto over = std::min(
                next,
                of_.clocks.of_store(set[field::store], set[field::store_expires_ns], set.sim()));
            if (over > set.sim()) {
                auto& moments = moments_[set[field::key]];
                moments.push_back({set.sim(), moment::kind::taken, 1, at, false});
                moments.push_back({over, moment::kind::taken, -1, at, false});
            }
        };
        for (position at = 0; at < all_.events.size(); ++at) {
            const auto& now = all_.events[at];
            if (now.what == op::block) {
                const auto key = pair_of(now[field::store], now[field::key]);
                const auto [before, is_first] = last.try_emplace(key, at);
                if (!is_first) {
                    add_hold(std::exchange(before->second, at), now.sim());
                }
            }
        }
        for (const auto& [key, at] : last) {
            add_hold(at, all_.end_ns());
        }
    }

    void judge_free(text_id key, const std::vector<open_call>& calls) {
        auto moments = moments_[key];
        for (const auto& change : faults_) {
            moments.push_back({change.sim, moment::kind::faults, change.by, nowhere, false});
        }
        for (const auto& call : calls) {
            moments.push_back({call.from, moment::kind::waiters, 1, call.inv, false});
            moments.push_back({call.until, moment::kind::waiters, -1, call.end, false});
        }
        for (const auto& waited : stretches_in(moments)) {
            const bool notified = waited.told && has_wake_bound();
            if (!notified && !has_poll_bound()) {
                continue;
            }
            const auto bound = all_.plan()[notified ? field::wake_bound_ns : field::poll_bound_ns];
            ++made_.judged;
            if (waited.until - waited.from > bound) {
                report_free(key, calls, waited, bound);
            }
        }
    }

    void report_free(text_id key,
                     const std::vector<open_call>& calls,
                     const stretch& waited,
                     std::int64_t bound) {
        finding made;
        for (const auto& call : calls) {
            if (call.from <= waited.from && call.until >= waited.from) {
                made.what = process_in(all_, all_.events[call.inv][field::proc]);
                made.events.push_back(call.inv);
                break;
            }
        }
        made.what += " waited for key " + name_in(all_, key) + ", which was free from " +
                     time_text(waited.from) + " on, and nobody asked for it until " +
                     (waited.then == nowhere ? std::string{"the end"} : time_text(waited.until)) +
                     "; the bound is " + time_text(bound) +
                     (waited.told ? " after a release" : " without a notification");
        for (const auto at : {waited.since, waited.then}) {
            if (at != nowhere) {
                made.events.push_back(at);
            }
        }
        add(std::move(made));
    }

    void judge_notified() {
        std::unordered_map<std::uint64_t, std::vector<const belief*>> held;
        for (const auto& which : of_.beliefs) {
            held[pair_of(which.proc, which.key)].push_back(&which);
        }
        const auto bound = all_.plan()[field::wake_bound_ns];
        std::unordered_map<std::uint64_t, int> waiting;
        std::unordered_map<text_id, std::int64_t> freed;  ///< keys, and when last
        for (position at = 0; at < all_.events.size(); ++at) {
            const auto& now = all_.events[at];
            if (now.what == op::end) {
                freed[now[field::key]] = now.sim();
            }
            if (now.what != op::wake && now.what != op::acquire) {
                continue;
            }
            const auto who = pair_of(now[field::proc], now[field::key]);
            if (now.what == op::acquire) {
                if (now[field::waits] != 0) {
                    waiting[who] += now.ph == phase::inv ? 1 : -1;
                }
                continue;
            }
            if (waiting[who] == 0 || disturbed(now.sim(), bound)) {
                continue;
            }
            // Whoever holds the key itself has no need to ask for it.
            const auto& mine = held[who];
            const auto after = std::upper_bound(
                mine.begin(), mine.end(), now.sim(), [](std::int64_t sim, const belief* which) {
                    return sim < which->from;
                });
            if (after != mine.begin() && (*(after - 1))->until >= now.sim()) {
                continue;
            }
            ++made_.judged;
            const auto& asked = asked_[who];
            const auto next = std::upper_bound(asked.begin(), asked.end(), at);
            // A request that left after the key became free will see that.
            if (next != asked.begin() && all_.events[*(next - 1)].what == op::tried &&
                all_.events[*(next - 1)].sim() > freed[now[field::key]]) {
                continue;
            }
            const bool late = next == asked.end() ? all_.end_ns() - now.sim() > bound
                                                  : all_.events[*next].sim() - now.sim() > bound;
            if (late) {
                finding made;
                made.what = process_in(all_, now[field::proc]) + " was notified that key " +
                            name_in(all_, now[field::key]) + " is free " + at_text(now.sim()) +
                            ", and did not ask for it within " + time_text(bound);
                made.events.push_back(at);
                if (next != asked.end()) {
                    made.events.push_back(*next);
                }
                add(std::move(made));
            }
        }
    }

    /// Whether a fault is at work in the time that the bound allows.
    [[nodiscard]] bool disturbed(std::int64_t from, std::int64_t bound) const {
        const auto next = std::lower_bound(
            faults_.begin(), faults_.end(), from, [](const fault_change& left, std::int64_t right) {
                return left.sim < right;
            });
        const auto index = static_cast<std::size_t>(next - faults_.begin());
        return (index > 0 && at_work_[index - 1] > 0) ||
               (next != faults_.end() && next->sim - from <= bound);
    }

    void add(finding what) {
        std::sort(what.events.begin(), what.events.end());
        what.events.erase(std::unique(what.events.begin(), what.events.end()), what.events.end());
        made_.violations.add(std::move(what));
    }

    const subject& of_;
    const history& all_;
    verdict made_;
    std::vector<fault_change> faults_;
    std::vector<int> at_work_;  ///< after each change
    std::map<text_id, std::vector<open_call>> waiters_;
    std::unordered_map<text_id, std::vector<moment>> moments_;
    std::unordered_map<std::uint64_t, std::vector<position>> asked_;  ///< tries, answers, adoptions
    std::unordered_map<text_id, bool> shared_;
};

}  // namespace

verdict check_wakes(const subject& of) {
    return wakes_check{of}.run();
}

}  // namespace dibs_checker
