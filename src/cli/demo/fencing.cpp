// SPDX-License-Identifier: Apache-2.0
#include "cli/demo/actors.hpp"
#include "cli/demo/demos.hpp"
#include "cli/demo/guarded_row.hpp"
#ifdef DIBS_WITH_POSTGRES
#include "cli/demo/guarded_tables.hpp"
#endif
#include "cli/output/speech.hpp"

#include <csignal>
#include <thread>

namespace dibs::cli {

namespace {

template <typename Rows>
int play(const demo_scene& scene, const demo_round& round, const Rows& rows) {
    const auto ttl = scene.length(milliseconds{1'000}, milliseconds{300});
    const auto stall = scene.length(milliseconds{2'500}, milliseconds{900});
    const shared_blackboard board;
    deliver("A lease of " + in_seconds(ttl) + "; its holder A is stopped for " + in_seconds(stall) +
            ", B takes over, A wakes and writes.\n\n");
    actor first([&] {
        auto through = round.open();
        const auto held = round.take(through, ttl, true);
        tell("A", "has the key, fence " + std::to_string(held.last_fence()) + "; is stopped");
        ::raise(SIGSTOP);
        tell("A", "wakes");
        board->refused = !rows.write("A", held.last_fence());
    });
    first.wait_until_stopped();
    const auto awake_at = std::chrono::steady_clock::now() + stall;
    actor second([&] {
        auto through = round.open();
        const auto held = round.take(through, ttl, true, std::chrono::seconds{30});
        tell("B", "has the key, fence " + std::to_string(held.last_fence()));
        (void)rows.write("B", held.last_fence());
    });
    second.join();
    std::this_thread::sleep_until(awake_at);
    first.go_on();
    first.join();
    return verdict(rows.shows_who_was_last("A", "B") && board->refused);
}

}  // namespace

int demo_fencing(const demo_scene& scene) {
    const demo_round round(scene);
#ifdef DIBS_WITH_POSTGRES
    if (!scene.data.empty()) {
        return play(scene, round, guarded_tables(scene.data, round.key()));
    }
#endif
    return play(scene, round, guarded_row(round));
}

}  // namespace dibs::cli
