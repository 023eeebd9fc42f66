// SPDX-License-Identifier: Apache-2.0
#pragma once
// A result for a key whose lease was lost. Whoever loses a lease gives it back, and then the store knows nothing of it any
// more; but the key still keeps the mark of its grant. As long as it does, nobody has begun since, and the result takes the
// mark's place in the step of another grant.

#include "recipes/mutex.hpp"

namespace dibs::recipes {

/// `released` tells that `result` is kept; without that and without an error, somebody else has or had the key since.
/// `terms`: as the lost lease was asked for, with a mark. One try; `done` is called once, never inside this call.
void leave_late_result(mutex& keys,
                       const lease_ptr& lost,
                       mutex_terms terms,
                       core::result_to_keep result,
                       mutex::release_completion done);

/// What was found under a key, to be put back as it was.
[[nodiscard]] core::result_to_keep as_it_was(const core::kept_result& found);

}  // namespace dibs::recipes
