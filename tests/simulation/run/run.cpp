// SPDX-License-Identifier: Apache-2.0
#include "simulation/run/run.hpp"

#include "recipes/mutex_parts.hpp"
#include "simulation/faults/fault.hpp"
#include "simulation/history/judge.hpp"
#include "simulation/run/scene.hpp"
#include "simulation/workloads/workload.hpp"

#include <algorithm>
#include <memory>

namespace dibs::simulation {

namespace {

/// A head that died, or cannot be reached, keeps its place for so long.
core::nanoseconds dead_head(const plan& drawn) {
    return drawn.workload->queues ? recipes::ticket_time : core::nanoseconds{0};
}

/// From a wake-up to the next try: those who gave a key back stand aside for some milliseconds. After
/// a fault the answer to a try may still be waited for, and after a failed one there is a pause.
core::nanoseconds wake_bound(const plan& drawn, const store_model& store) {
    if (!store.wakes() && drawn.faults.empty()) {
        // They look every 100 ms, half as much more when it is spread; in a queue as many times more
        // as there are others before them.
        const auto places = drawn.workload->queues ? drawn.processes * drawn.callers : 1U;
        return core::milliseconds{100} + core::milliseconds{150} * places;
    }
    return drawn.faults.empty() ? core::nanoseconds{core::milliseconds{100}}
                                : drawn.ttl / 6 + core::milliseconds{1700} + dead_head(drawn);
}

/// The timer behind a wait is two seconds, half as much more when it is spread.
constexpr core::nanoseconds poll_bound = core::milliseconds{3500};

/// An operator's hold that comes late.
core::nanoseconds late_hold(const plan& drawn) {
    const bool may_come =
        std::any_of(drawn.faults.begin(), drawn.faults.end(), [](const fault_kind* one) {
            return one->name == "intervention";
        });
    return may_come ? core::nanoseconds{4 * drawn.ttl} : core::nanoseconds{0};
}

/// A lease that nobody knows of lasts for its ttl after it was granted late; a caller works with
/// slow messages; then somebody has to look.
core::nanoseconds progress_bound(const plan& drawn) {
    return drawn.work_most + 3 * drawn.ttl + 2 * poll_bound + dead_head(drawn) + late_hold(drawn);
}

void write_plan(scene& on) {
    const auto& drawn = on.drawn;
    on.history.event("plan")
        .number("format", 1)
        .time("wake_bound_ns", wake_bound(drawn, on.store()))
        .time("poll_bound_ns", poll_bound)
        .time("progress_bound_ns", progress_bound(drawn))
        .text("note", drawn.text());
}

void write_end(scene& on) {
    for (auto& one : on.seats()) {
        if (one.now && one.now->alive()) {
            on.history.event("clock").text("proc", one.now->name()).time("local_ns", one.on->now());
        }
    }
    on.history.event("clock").time("store_ns", on.store().clock().lease);
    on.history.event("over");
}

}  // namespace

outcome run(const plan& drawn) {
    scene stage{drawn};
    write_plan(stage);
    // The stage keeps it, too: clients that end with the stage still answer to it.
    const std::shared_ptr<workload> work = drawn.workload->make(stage);
    stage.put_to_work = [work](client_process& newcomer) { work->employ(newcomer); };
    stage.start_all();

    std::vector<std::unique_ptr<fault>> faults;
    for (const auto* one : drawn.faults) {
        faults.push_back(one->make(stage, stage.chance.split()));
        faults.back()->begin();
    }
    stage.world.run_until(drawn.faults_for);
    stage.heal();
    for (const auto& one : faults) {
        one->heal();
    }
    const auto grants_before = stage.laws.grants();
    stage.world.run_until(drawn.faults_for + progress_bound(drawn) + drawn.healed_for);
    if (work->goes_on() && stage.laws.grants() == grants_before) {
        stage.complain("after all faults were over nobody was granted anything any more");
    }
    work->judge();
    write_end(stage);

    outcome told;
    told.violations = stage.laws.broken();
    for (const auto& one : stage.complaints()) {
        told.violations.push_back(one);
    }
    told.history = stage.history.take();
    told.steps = stage.world.steps();
    told.operations = stage.counted.answered;
    told.grants = stage.laws.grants();
    told.excused = stage.laws.excused();
    told.lost_updates = work->lost_updates();
    if (const auto spread = work->grants_per_caller()) {
        told.unfairness = spread->most - spread->least;
    }
    return told;
}

void judge(outcome& of) {
    const auto found = judge(of.history);
    of.violations.insert(of.violations.end(), found.violations.begin(), found.violations.end());
    of.excused += found.excused;
    // What is told is what whoever reads the history will find.
    if (!of.violations.empty() && report(of.history) != report_of_text(of.history.text())) {
        of.violations.push_back("the history is judged otherwise when it is read from its text");
    }
}

}  // namespace dibs::simulation
