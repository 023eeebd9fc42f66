// SPDX-License-Identifier: Apache-2.0
// C4: every fenced register, and the mutex itself, is linearizable. A search that runs out of steps
// is no pass: it is told as undecided.
#include "checker/checks/checks.hpp"
#include "checker/search/objects.hpp"
#include "checker/words.hpp"

#include <algorithm>
#include <set>

namespace dibs_checker {
namespace {

/// How much more than one search its shortening may cost.
constexpr std::uint64_t shrink_factor = 20;

std::string described(const history& all, const traced<fenced_register>& which) {
    const auto& action = which.op.what;
    const auto& inv = all.events[which.begin];
    const auto who = process_in(all, inv[field::proc]);
    const auto fence = action.fenced ? " with fence " + std::to_string(action.fence) : "";
    switch (action.what) {
        case fenced_register::kind::read:
            return who + " read " + all.value_text(action.value);
        case fenced_register::kind::refused:
            return who + " was refused as stale" + fence;
        case fenced_register::kind::write:
            return who + " wrote " + all.value_text(action.value) + fence;
        case fenced_register::kind::claim:
            return who + " claimed" + fence;
    }
    return who;
}

std::string described(const history& all, const traced<fenced_mutex>& which) {
    const auto fence = " fence " + std::to_string(which.op.what.fence);
    const auto& from = all.events[which.begin];
    if (which.op.what.what == fenced_mutex::kind::acquire) {
        return process_in(all, from[field::proc]) + " got" + fence;
    }
    return (from.what == op::release ? process_in(all, from[field::proc]) + " gave back"
                                     : std::string{"time ran out for"}) +
           fence;
}

template <class Model>
void add_events(const traced<Model>& which, std::vector<position>& events) {
    for (const auto at : {which.begin, which.end}) {
        if (at != nowhere) {
            events.push_back(at);
        }
    }
}

void add_reasons(const std::vector<traced<fenced_register>>&,
                 const std::vector<std::size_t>&,
                 std::vector<position>&) {}

/// Until when a lease could not end by itself: its possible endings, also those that came too late
/// for the order.
void add_reasons(const std::vector<traced<fenced_mutex>>& traces,
                 const std::vector<std::size_t>& kept,
                 std::vector<position>& events) {
    std::set<std::int64_t> fences;
    for (const auto op : kept) {
        fences.insert(traces[op].op.what.fence);
    }
    for (const auto& which : traces) {
        if (which.op.optional() && which.begin != nowhere && fences.contains(which.op.what.fence)) {
            events.push_back(which.begin);
        }
    }
}

template <class Model>
finding explained(const history& all,
                  const std::string& object,
                  const std::vector<traced<Model>>& traces,
                  const shrinker<Model>& shortest) {
    finding made;
    std::vector<operation<Model>> rest;
    std::vector<std::size_t> origin;
    for (std::size_t op = 0; op < traces.size(); ++op) {
        if (shortest.kept(op)) {
            add_events(traces[op], made.events);
            rest.push_back(shortest.ops()[op]);
            origin.push_back(op);
        }
    }
    add_reasons(traces, origin, made.events);
    std::sort(made.events.begin(), made.events.end());
    made.events.erase(std::unique(made.events.begin(), made.events.end()), made.events.end());
    const auto last = linearize<Model>(rest, std::numeric_limits<std::uint64_t>::max()).stuck_at;
    const auto& stuck = traces[origin[last]];
    const auto when =
        " between " + time_text(stuck.op.call) + " and " + time_text(stuck.op.returned);
    if (rest.size() == 1) {
        made.what = object + ": " + described(all, stuck) + when + ", which nothing explains";
    } else {
        made.what = object + ": no order of these " + std::to_string(rest.size()) +
                    " operations agrees with what each was answered; " + described(all, stuck) +
                    when + ", and nothing before explains it";
    }
    return made;
}

/// Where two may believe, or a fence may come twice, the lock is no mutex; the registers behind it
/// must stay what they are all the same.
bool excuses(const subject& of, position event_at) {
    return of.excuses(check_id::c1, event_at) || of.excuses(check_id::c2, event_at) ||
           of.excuses(check_id::c3, event_at);
}

template <class Model>
void judge(const subject& of,
           const std::string& object,
           const std::vector<traced<Model>>& traces,
           bool excusable,
           verdict& made) {
    std::vector<operation<Model>> ops;
    for (const auto& which : traces) {
        ops.push_back(which.op);
    }
    made.judged += ops.size();
    const auto report = linearize<Model>(ops, of.bounds.search_steps);
    if (report.result == search_result::out_of_steps) {
        // Overlaps that are excused can make the search as long as it likes.
        const bool lifted =
            excusable && excuses(of, static_cast<position>(of.all.events.size() - 1));
        (lifted ? made.excused : made.undecided)
            .add({object + ": the search ended after " + std::to_string(report.steps) +
                      " steps with " + std::to_string(ops.size()) +
                      " operations undecided; this is no pass (--steps N allows more)",
                  {}});
    } else if (report.result == search_result::impossible) {
        shrinker<Model> shortest{ops, of.bounds.search_steps * shrink_factor};
        shortest.cut_after(report.stuck_at);
        shrink(shortest);
        auto found = explained(of.all, object, traces, shortest);
        const bool excused = excusable && excuses(of, found.events.back());
        (excused ? made.excused : made.violations).add(std::move(found));
    }
}

}  // namespace

verdict check_linearizability(const subject& of) {
    verdict made;
    made.check = check_id::c4;
    for (const auto& [key, traces] : registers_in(of.all)) {
        judge(of, "register " + name_in(of.all, key), traces, false, made);
    }
    for (const auto& [key, traces] : mutexes_in(of)) {
        judge(of, "the lock on key " + name_in(of.all, key), traces, true, made);
    }
    return made;
}

}  // namespace dibs_checker
