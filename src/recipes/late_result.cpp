// SPDX-License-Identifier: Apache-2.0
#include "recipes/late_result.hpp"

#include <utility>

namespace dibs::recipes {

core::result_to_keep as_it_was(const core::kept_result& found) {
    return {.value = found.value, .fresh = found.fresh_left, .keep = found.keep_left};
}

void leave_late_result(mutex& keys,
                       const lease_ptr& lost,
                       mutex_terms terms,
                       core::result_to_keep result,
                       mutex::release_completion done) {
    terms.wait = core::nanoseconds::zero();
    terms.patient_until = core::instant::max();
    terms.seen = lost->fence();
    terms.mark = std::move(result);
    keys.acquire(
        lost->key(),
        std::move(terms),
        [&keys, ours = lost->fence(), done = std::move(done)](mutex_outcome&& outcome) mutable {
            if (!outcome.lease) {
                done({.released = false,
                      .error = outcome.error,
                      .detail = std::move(outcome.detail)});
                return;
            }
            const auto& found = outcome.result;
            // Written by this very grant where the store executed the request twice.
            const bool written =
                !found || found->fence == ours || found->fence == outcome.lease->fence();
            if (written) {
                keys.release(outcome.lease, [](release_reply) {});
            } else {
                keys.release(outcome.lease, as_it_was(*found), [](release_reply) {});
            }
            done({.released = written, .error = {}, .detail = {}});
        });
}

}  // namespace dibs::recipes
