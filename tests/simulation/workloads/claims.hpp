// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the workloads share in which a process claims a key through a recipe, does its work, and finishes with an outcome:
// one caller per process, and how its steps are written down.

#include "simulation/workloads/caller.hpp"

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace dibs::simulation {

/// The one caller of a process.
template <typename Recipe>
struct claimant {
    using recipe_type = Recipe;
    explicit claimant(client_process& process) : by(process) {}

    client_process& by;
    std::unique_ptr<Recipe> recipe;
    typename Recipe::call_ptr call;  ///< kept by nobody else while it waits
};

/// Milliseconds since 1970 by the clock of its machine.
[[nodiscard]] std::function<std::int64_t()> calendar_of(client_process& by);

/// A caller for a process that has come; `through` is what its recipe goes through to the store.
template <typename Worker, typename Through>
[[nodiscard]] std::shared_ptr<Worker> employed(client_process& newcomer, Through& through) {
    auto made = std::make_shared<Worker>(newcomer);
    auto& core = *newcomer.core();
    made->recipe = std::make_unique<typename Worker::recipe_type>(
        core.env(), through, core.mutex(), calendar_of(newcomer));
    // After the client has gone: its calls still look at the recipe.
    newcomer.after_client([made] {
        made->call.reset();
        made->recipe.reset();
    });
    return made;
}

/// Half of the claims wait.
[[nodiscard]] acquire_options claim_options(scene& on);

/// Cancels some of the calls that have just begun.
template <typename Worker>
void cancel_by_chance(scene& on, const std::shared_ptr<Worker>& who) {
    if (!on.healed() && on.chance.chance(on.drawn.cancel_per_mille)) {
        who->by.self().post_in(on.chance.skewed(core::nanoseconds{0}, on.drawn.ttl),
                               [who, claimed = who->call] { who->recipe->cancel(claimed); });
    }
}

/// Begins the line of a claim. One that waits does so for an outcome, too: it is no party of a line of waiters.
[[nodiscard]] std::uint64_t note_claim(client_process& by,
                                       const std::string& key,
                                       core::nanoseconds ttl);
/// It brought no lease.
void note_no_lease(client_process& by,
                   std::uint64_t call,
                   const std::string& key,
                   std::error_code error);

/// Is told the number of the job's call; 0: it did not begin.
using job_done = std::function<void(std::uint64_t job_call)>;

/// Does the work under a lease, unless it is over before that begins.
void do_job(scene& on,
            client_process& by,
            const core::lease_state& under,
            bool begins,
            core::nanoseconds length,
            job_done then);
/// Does nothing of a job that did not begin.
void note_job_end(client_process& by,
                  std::uint64_t job_call,
                  const std::string& key,
                  std::string_view phase);
/// How the run of a slot ended: who has lost its lease has failed; where the outcome may be kept, it is unknown.
[[nodiscard]] std::string_view phase_of_run(const recipes::release_reply& told, bool success);

}  // namespace dibs::simulation
