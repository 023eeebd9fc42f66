// SPDX-License-Identifier: Apache-2.0
#pragma once
// Makes a new file a store, and tells a store from everything else. Changes nothing in a file that
// is not one.

#include "store/sqlite/errors.hpp"

#include <sqlite3.h>

#include <string>

namespace dibs::store::sqlite {

/// Requires: a busy handler is set on `db`, and `path` names it for people. `make`: an empty file
/// becomes a store; without, it is refused.
[[nodiscard]] failure ensure_schema(sqlite3* db, const std::string& path, bool make);

}  // namespace dibs::store::sqlite
