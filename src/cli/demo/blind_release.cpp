// SPDX-License-Identifier: Apache-2.0
#include "cli/demo/actors.hpp"
#include "cli/demo/demos.hpp"
#include "cli/demo/hand_made_lock.hpp"
#include "cli/output/speech.hpp"

#include <thread>

namespace dibs::cli {

namespace {

/// How many were at work at the same time.
int by_hand(const demo_scene& scene, milliseconds ttl, milliseconds late) {
    const demo_round round(scene);
    const shared_blackboard board;
    actor first([&] {
        const auto lock = open_hand_made_lock(round);
        (void)lock->take(ttl);
        tell("A", "has the lock");
        board->first_has_it = true;
        std::this_thread::sleep_for(late);
        wait_for(board->second_has_it);
        const auto gone = lock->give_back();
        tell(
            "A",
            "gives the lock back: " + std::to_string(gone) + " " + lock->thing() + " deleted, B's");
        board->first_has_left = true;
    });
    wait_for(board->first_has_it);
    actor second([&] {
        const auto lock = open_hand_made_lock(round);
        while (!lock->take(std::chrono::minutes{5})) {
            std::this_thread::sleep_for(milliseconds{5});
        }
        tell("B", "has the lock, A's has expired; begins its work");
        board->begin();
        board->second_has_it = true;
        wait_for(board->third_has_tried);
        board->end();
    });
    wait_for(board->first_has_left);
    actor third([&] {
        const auto lock = open_hand_made_lock(round);
        if (lock->take(std::chrono::minutes{5})) {
            tell("C", "has the lock too; begins its work");
            board->begin();
            board->end();
        }
        board->third_has_tried = true;
        (void)lock->give_back();
    });
    third.join();
    second.join();
    first.join();
    return board->most_at_work;
}

/// The same with dibs. 0: A's late release took something away.
int with_dibs(const demo_scene& scene, milliseconds ttl, milliseconds late) {
    const demo_round round(scene);
    const shared_blackboard board;
    actor first([&] {
        auto through = round.open();
        auto held = round.take(through, ttl, false);
        tell("A", "has the key, fence " + std::to_string(held.last_fence()));
        board->first_has_it = true;
        std::this_thread::sleep_for(late);
        wait_for(board->second_has_it);
        std::error_code error;
        const bool gave_back = held.release(error) == release_outcome::released;
        tell("A", gave_back ? "gives the key back" : "gives the key back: it is not held any more");
        board->refused = !gave_back;
        board->first_has_left = true;
    });
    wait_for(board->first_has_it);
    actor second([&] {
        auto through = round.open();
        const auto held = round.take(through, ttl, true, std::chrono::seconds{30});
        tell("B", "has the key, A's lease has expired; fence " + std::to_string(held.last_fence()));
        board->begin();
        board->second_has_it = true;
        wait_for(board->third_has_tried);
        board->end();
    });
    wait_for(board->first_has_left);
    actor third([&] {
        auto through = round.open();
        if (const auto held = through.try_acquire(round.key())) {
            board->begin();
            tell("C", "has the key too");
            board->end();
        } else {
            tell("C", "finds the key held by B, and leaves");
        }
        board->third_has_tried = true;
    });
    third.join();
    second.join();
    first.join();
    return board->refused ? board->most_at_work.load() : 0;
}

void count(int at_work) {
    deliver("  at work at the same time: " + std::to_string(at_work) + " (should be 1)\n");
}

}  // namespace

int demo_blind_release(const demo_scene& scene) {
    const auto ttl = scene.length(milliseconds{1'000}, milliseconds{300});
    const auto late = 2 * ttl;
    deliver("A holds for " + in_seconds(ttl) + ", but works for " + in_seconds(late) +
            ". B has the lock by then; A gives \"its\" lock back; C comes.\n");
    const auto shown = open_hand_made_lock(demo_round(scene));
    deliver("\nby hand, taken by " + shown->how_taken(true) + ", given back by " +
            shown->how_given_back() + ":\n");
    const int without = by_hand(scene, ttl, late);
    count(without);
    deliver("\nwith dibs, which gives back by holder id:\n");
    const int with = with_dibs(scene, ttl, late);
    count(with);
    return verdict(without == 2 && with == 1);
}

}  // namespace dibs::cli
