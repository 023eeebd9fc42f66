// SPDX-License-Identifier: Apache-2.0
#pragma once
// Statements over a connection whose answers are waited for: while a store is opened, and nobody else
// uses it.

#include "core/environment.hpp"
#include "store/postgres/link.hpp"

#include <string>

namespace dibs::store::postgres {

/// Until an open connection is ready. Why it is not.
[[nodiscard]] trouble greeted(link& over, core::environment env);

/// One text of statements; the last result. No result: the connection is closed, see its fault.
[[nodiscard]] reply converse(link& over,
                             core::environment env,
                             const std::string& sql,
                             core::nanoseconds patience);

}  // namespace dibs::store::postgres
