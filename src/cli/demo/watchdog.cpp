// SPDX-License-Identifier: Apache-2.0
#include "cli/demo/actors.hpp"
#include "cli/demo/demos.hpp"
#include "cli/output/speech.hpp"

#include <thread>

namespace dibs::cli {

namespace {

/// How many were at work at the same time.
int work_longer_than_the_ttl(const demo_scene& scene,
                             milliseconds ttl,
                             milliseconds work,
                             bool renew) {
    const demo_round round(scene);
    const shared_blackboard board;
    actor first([&] {
        auto through = round.open();
        auto held = round.take(through, ttl, renew);
        tell("A", "has the key, begins its work");
        board->begin();
        board->first_has_it = true;
        std::this_thread::sleep_for(work);
        board->end();
        tell("A", std::string("has finished; held to the end: ") + (held.held() ? "yes" : "no"));
    });
    wait_for(board->first_has_it);
    actor second([&] {
        auto through = round.open();
        const auto held = round.take(through, ttl, true, 3 * work);
        tell("B", "has the key, begins its work");
        board->begin();
        std::this_thread::sleep_for(milliseconds{50});
        board->end();
    });
    second.join();
    first.join();
    const int most = board->most_at_work;
    deliver("  at work at the same time: " + std::to_string(most) + " (should be 1)\n");
    return most;
}

}  // namespace

int demo_watchdog(const demo_scene& scene) {
    const auto ttl = scene.length(milliseconds{5'000}, milliseconds{500});
    const auto work = scene.length(milliseconds{12'000}, milliseconds{1'200});
    deliver("Work of " + in_seconds(work) + " under a ttl of " + in_seconds(ttl) +
            "; B waits for the key.\n\nwithout renewal:\n");
    const int without = work_longer_than_the_ttl(scene, ttl, work, false);
    deliver("\nwith the watchdog, which renews while the work goes on:\n");
    const int with = work_longer_than_the_ttl(scene, ttl, work, true);
    return verdict(without == 2 && with == 1);
}

}  // namespace dibs::cli
