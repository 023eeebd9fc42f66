// SPDX-License-Identifier: Apache-2.0
#pragma once
// Single questions to the server by whoever may wait for the answer: an operator's command. Not on
// the executor.

#include "core/environment.hpp"
#include "store/postgres/engine.hpp"

#include <functional>
#include <string>
#include <vector>

namespace dibs::store::postgres {

/// An answer that outlives its connection.
struct heard {
    std::string fault;                           ///< empty: it was answered without one
    std::vector<std::vector<std::string>> rows;  ///< null is empty
};

/// As it was heard; `why` counts where nothing was.
[[nodiscard]] heard rows_of(const reply* told, const trouble& why);

/// Puts such questions, whatever the way.
using asking = std::function<heard(const std::string& sql)>;

/// Blocks for a few seconds at most.
[[nodiscard]] heard ask(engine& through, core::environment env, const std::string& sql);

/// Before such a question, for sessions that a pooler lends: no function or operator of others is
/// found in the place of the server's own, and no row is hidden by a policy.
inline constexpr const char* as_in_our_sessions =
    "SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL row_security = off; ";

}  // namespace dibs::store::postgres
