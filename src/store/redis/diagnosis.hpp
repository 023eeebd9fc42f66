// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the settings of a server allow to go wrong, for `dibs doctor`.

#include "core/environment.hpp"
#include "store/finding.hpp"

#include <string>
#include <vector>

namespace dibs::store::redis {

class engine;
struct speaker;

/// Asks the server over the engine's connection. Blocks for a few seconds at most; not on the
/// executor. Rights that are missing are findings of their own.
[[nodiscard]] std::vector<finding> diagnose(engine& through,
                                            core::environment env,
                                            const speaker& self);

/// Why this server cannot give guarantee=strict; empty: it can. Blocks as above.
[[nodiscard]] std::string why_not_strict(engine& through, core::environment env);

}  // namespace dibs::store::redis
