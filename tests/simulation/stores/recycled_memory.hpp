// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory for SQLite that is kept for the next who asks: pages and cursors come and go with every
// statement, and are of few sizes.

struct sqlite3_mem_methods;

namespace dibs::simulation {

/// For sqlite3_config. Thread safety: none.
[[nodiscard]] const sqlite3_mem_methods& recycled_memory() noexcept;

}  // namespace dibs::simulation
