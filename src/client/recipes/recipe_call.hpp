// SPDX-License-Identifier: Apache-2.0
#pragma once
// The two halves of a recipe that lets its caller do the work, for callers that block: ask whether it is to be done, and say
// how it ended.

#include "client/client_core.hpp"

#include <memory>
#include <stop_token>
#include <system_error>
#include <utility>

namespace dibs::detail {

/// Claims, and waits for what becomes of it. `stop` cancels the wait. `make(client_core&)` gives the recipe; it is made and
/// used on the executor alone.
template <typename Outcome, typename Make, typename Terms>
Outcome claim_and_wait(const std::shared_ptr<client_core>& core,
                       Terms terms,
                       std::stop_token stop,
                       Make make) {
    using recipe_ptr = decltype(make(*core));
    struct claiming {
        recipe_ptr recipe;
        typename recipe_ptr::element_type::call_ptr call;
        bool cancelled = false;
    };
    const auto state = std::make_shared<claiming>();
    Outcome outcome;
    const auto cancel = [&core, state] {
        core->post([core, state] {
            state->cancelled = true;
            if (state->call && !core->closed()) {
                state->recipe->cancel(state->call);
            }
        });
    };
    const std::stop_callback on_stop(std::move(stop), cancel);
    core->run([&](core::task done) {
        if (core->closed() || state->cancelled) {
            outcome.error = errc::cancelled;
            if (core->closed()) {
                auto refusal = core->refusal();
                outcome.error = refusal.error;
                outcome.detail = std::move(refusal.detail);
            }
            done();
            return;
        }
        state->recipe = make(*core);
        state->call = state->recipe->claim(
            std::move(terms), [&outcome, state, done = std::move(done)](Outcome ended) mutable {
                state->call.reset();
                outcome = std::move(ended);
                done();
            });
    });
    return outcome;
}

/// Tells how the work under `held` ended, and waits for the answer: `end(recipe, lease, completion)` says it. not_held
/// without an error: the lease was lost before.
template <typename Make, typename End>
release_outcome end_and_wait(client& through,
                             lease& held,
                             std::error_code& error,
                             Make make,
                             End end) noexcept {
    error.clear();
    const auto core = lease_access::core(through);
    const auto handle = lease_access::handle(held);
    if (!core || !handle) {
        return release_outcome::not_held;
    }
    decltype(make(*core)) recipe;
    recipes::release_reply told;
    core->run([&](core::task done) {
        if (core->closed()) {
            told.error = errc::closed;
            done();
            return;
        }
        recipe = make(*core);
        end(*recipe,
            handle->state,
            [&told, done = std::move(done)](recipes::release_reply heard) mutable {
                told = std::move(heard);
                done();
            });
    });
    error = told.error;
    return told.released ? release_outcome::released : release_outcome::not_held;
}

}  // namespace dibs::detail
