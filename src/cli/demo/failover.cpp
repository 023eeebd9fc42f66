// SPDX-License-Identifier: Apache-2.0
#include "cli/demo/actors.hpp"
#include "cli/demo/demos.hpp"
#include "cli/demo/guarded_row.hpp"
#include "cli/demo/own_servers.hpp"
#include "cli/output/speech.hpp"

namespace dibs::cli {

int demo_failover(const demo_scene& scene) {
    constexpr milliseconds ttl{20'000};
    deliver(
        "A primary and a replica of this demo's own. The primary dies before the replica knows\n"
        "that A has the key; the replica takes over; B comes.\n\n");
    own_server primary(scene.folder);
    own_server replica(scene.folder);
    replica.follow(primary);

    demo_scene before = scene;
    before.store = primary.url();
    const demo_round round(before);
    const guarded_row rows(round);
    const shared_blackboard board;
    replica.stop();
    primary.cut_followers_off();
    tell("replica", "is cut off from its primary");
    actor first([&] {
        auto through = round.open();
        const auto held = round.take(through, ttl, true);
        tell("A", "has the key, fence " + std::to_string(held.last_fence()));
        board->first_has_it = true;
        wait_for(board->second_has_it);
        board->begin();
        tell("A", std::string("still believes to have it: ") + (held.held() ? "yes" : "no"));
        board->refused = held.held() && !rows.write("A", held.last_fence());
        board->end();
        board->first_has_left = true;
    });
    wait_for(board->first_has_it);
    primary.kill();
    tell("primary", "is killed");
    replica.go_on();
    replica.promote();
    tell("replica", "has taken over; it knows of no lock");
    actor second([&] {
        auto through = open_demo_client(replica.url());
        const auto held = round.take(through, ttl, true);
        board->begin();
        tell("B", "has the key too, fence " + std::to_string(held.last_fence()));
        (void)rows.write("B", held.last_fence());
        board->second_has_it = true;
        wait_for(board->first_has_left);
        board->end();
    });
    second.join();
    first.kill();  // it would try to give back what it has to a server that is no more
    const bool as_told = rows.shows_who_was_last("A", "B") && board->refused;
    deliver("  at work at the same time: " + std::to_string(board->most_at_work.load()) +
            ": no lock on such servers can prevent that; the fence is what protects the data.\n");
    return verdict(as_told && board->most_at_work == 2);
}

}  // namespace dibs::cli
