// SPDX-License-Identifier: Apache-2.0
#include "cli/demo/actors.hpp"
#include "cli/demo/demos.hpp"
#include "cli/demo/hand_made_lock.hpp"
#include "cli/output/speech.hpp"

#include <unistd.h>

#include <thread>

namespace dibs::cli {

namespace {

/// Whether B gets the lock, some time after A was killed with it.
bool by_hand(const demo_scene& scene, milliseconds patience, bool would_set_a_ttl) {
    const demo_round round(scene);
    const shared_blackboard board;
    actor first([&] {
        const auto lock = open_hand_made_lock(round);
        (void)lock->take(std::nullopt);
        tell("A",
             std::string("has the lock") +
                 (would_set_a_ttl ? ", is about to set its ttl" : ", begins its work"));
        board->first_has_it = true;
        ::pause();
    });
    wait_for(board->first_has_it);
    first.kill();
    tell("A", "is killed");
    actor second([&] {
        const auto lock = open_hand_made_lock(round);
        const auto until = std::chrono::steady_clock::now() + patience;
        bool got = false;
        while (!(got = lock->take(std::nullopt)) && std::chrono::steady_clock::now() < until) {
            std::this_thread::sleep_for(milliseconds{10});
        }
        tell("B",
             got ? "has the lock"
                 : "has waited for " + in_seconds(patience) +
                       "; nobody is there, and the lock is held. Next year it would still be");
        board->second_has_it = got;
        (void)lock->give_back();  // by the operator who is called at night
    });
    second.join();
    return board->second_has_it;
}

bool with_dibs(const demo_scene& scene, milliseconds ttl) {
    const demo_round round(scene);
    const shared_blackboard board;
    actor first([&] {
        auto through = round.open();
        const auto held = round.take(through, ttl, true);
        tell("A", "has the key, and renews");
        board->first_has_it = true;
        ::pause();
    });
    wait_for(board->first_has_it);
    first.kill();
    tell("A", "is killed");
    const auto killed = std::chrono::steady_clock::now();
    actor second([&] {
        auto through = round.open();
        const auto held = round.take(through, ttl, true, 10 * ttl);
        const auto waited =
            std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - killed);
        tell("B", "has the key, " + std::to_string(waited.count()) + " ms later");
        board->second_has_it = true;
    });
    second.join();
    return board->second_has_it;
}

}  // namespace

int demo_no_expiry(const demo_scene& scene) {
    const auto ttl = scene.length(milliseconds{3'000}, milliseconds{500});
    const auto patience = 2 * ttl;
    deliver("A is killed while it has the lock; B waits for it.\n");
    const auto shown = open_hand_made_lock(demo_round(scene));
    deliver("\nby hand, taken by " + shown->how_taken(false) + ":\n");
    const bool without = by_hand(scene, patience, false);
    deliver("\nby hand, with a ttl set by a second command, which A does not live to send:\n");
    const bool too_late = by_hand(scene, patience, true);
    deliver("\nwith dibs, which never grants without an expiry, ttl " + in_seconds(ttl) + ":\n");
    const bool with = with_dibs(scene, ttl);
    return verdict(!without && !too_late && with);
}

}  // namespace dibs::cli
