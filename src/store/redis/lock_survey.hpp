// SPDX-License-Identifier: Apache-2.0
#pragma once
// What lies on the server, for `dibs doctor`: what this user may do with it, who has held a key for
// the longest time, and keys of others that look like locks and never expire.

#include "core/environment.hpp"
#include "store/finding.hpp"

#include <vector>

namespace dibs::store::redis {

class engine;
struct speaker;

/// Blocks: looks at a bounded part of a large database.
void survey_locks(engine& through,
                  core::environment env,
                  const speaker& self,
                  std::vector<finding>& found);

}  // namespace dibs::store::redis
