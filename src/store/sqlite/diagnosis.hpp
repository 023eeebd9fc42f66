// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a store is: its place, its settings, its records, the clocks that it lives by. Changes
// nothing.

#include "core/time.hpp"
#include "store/finding.hpp"
#include "store/sqlite/process_id.hpp"

#include <string>
#include <vector>

namespace dibs::store::sqlite {

struct patient {
    std::string path;
    bool full = false;  ///< synchronous=full
    std::string boot_id;
    process_id self;
    core::store_now now;
};

/// Looks through a connection of its own, never at the file directly: closing a descriptor of it
/// would drop the locks that this process has on it through SQLite.
[[nodiscard]] std::vector<finding> diagnose(const patient& whom);

}  // namespace dibs::store::sqlite
