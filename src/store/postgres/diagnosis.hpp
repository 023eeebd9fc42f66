// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the settings of a server allow to go wrong, for `dibs doctor`.

#include "core/environment.hpp"
#include "store/finding.hpp"
#include "store/postgres/address.hpp"

#include <vector>

namespace dibs::store::postgres {

class engine;

/// Asks the server over the engine's connection. Blocks for a few seconds at most; not on the
/// executor. What this user may not see is left out.
[[nodiscard]] std::vector<finding> diagnose(engine& through,
                                            core::environment env,
                                            const address& where);

/// The same over a connection of its own, where nobody has made the tables yet: none are made. Empty:
/// they are there.
[[nodiscard]] std::vector<finding> survey(core::environment env, const address& where);

}  // namespace dibs::store::postgres
