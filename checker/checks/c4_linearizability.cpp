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
    auto who = process_in(all, inv[field::proc]);
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

template <class Model>
void judge(const subject& of,
           const std::string& object,
           const std::vector<traced<Model>>& traces,
           finding_list& violations,
           finding_list& undecided) {
    std::vector<operation<Model>> ops;
    ops.reserve(traces.size());
    for (const auto& which : traces) {
        ops.push_back(which.op);
    }
    const auto report = linearize<Model>(ops, of.bounds.search_steps);
    if (report.result == search_result::out_of_steps) {
        undecided.add({object + ": the search ended after " + std::to_string(report.steps) +
                           " steps with " + std::to_string(ops.size()) +
                           " operations undecided; this is no pass (--steps N allows more)",
                       {}});
    } else if (report.result == search_result::impossible) {
        shrinker<Model> shortest{ops, of.bounds.search_steps * shrink_factor};
        shortest.cut_after(report.stuck_at);
        shrink(shortest);
        violations.add(explained(of.all, object, traces, shortest));
    }
}

/// The first fault after which two may believe, or a fence may come twice: then the lock is no
/// mutex. The registers behind it must stay what they are all the same.
position first_excuse(const subject& of) {
    return std::min({of.first_excuse(check_id::c1),
                     of.first_excuse(check_id::c2),
                     of.first_excuse(check_id::c3)});
}

/// What had begun before an instant. What ended later may have had its effect by then or not.
std::vector<traced<fenced_mutex>> before(std::int64_t sim,
                                         std::vector<traced<fenced_mutex>> traces) {
    std::erase_if(traces, [&](const traced<fenced_mutex>& which) { return which.op.call >= sim; });
    for (auto& which : traces) {
        if (which.op.returned >= sim) {
            which.op.returned = no_return;
        }
    }
    return traces;
}

void judge_lock(const subject& of,
                const std::string& object,
                const std::vector<traced<fenced_mutex>>& traces,
                verdict& made) {
    const auto fault = first_excuse(of);
    if (fault == nowhere) {
        judge(of, object, traces, made.violations, made.undecided);
        return;
    }
    const auto found = made.violations.count() + made.undecided.count();
    judge(of, object, before(of.all.events[fault].sim(), traces), made.violations, made.undecided);
    if (made.violations.count() + made.undecided.count() == found) {
        judge(of, object, traces, made.excused, made.excused);
    }
}

}  // namespace

verdict check_linearizability(const subject& of) {
    verdict made;
    made.check = check_id::c4;
    for (const auto& [key, traces] : registers_in(of.all)) {
        made.judged += traces.size();
        judge(of, "register " + name_in(of.all, key), traces, made.violations, made.undecided);
    }
    for (const auto& [key, traces] : mutexes_in(of)) {
        made.judged += traces.size();
        judge_lock(of, "the lock on key " + name_in(of.all, key), traces, made);
    }
    return made;
}

}  // namespace dibs_checker
