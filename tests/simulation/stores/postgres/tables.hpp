// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the store keeps in a database, as the model of the server has it: the records of the rules
// instead of rows. A copy of it is what a standby, or a disk, knows.

#include "core/record.hpp"
#include "store/record/ticket_line.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace dibs::simulation::postgres {

/// `lease`, and what is of that key in `lease_grant` and `lease_ticket`.
struct lease_row {
    core::record kept;
    std::uint64_t last_ticket = 0;
    store::ticket_line line;
};

/// `lease_waiter`.
struct waiter {
    std::int64_t pid = 0;
};

/// `lease_epoch`.
struct epoch {
    std::uint32_t timeline = 0;
    std::int64_t longest = 0;
    std::int64_t quiet_until = 0;
};

struct tables {
    std::map<std::string, lease_row> leases;
    /// Unlogged: empty after a crash, and on a standby. By key and process.
    std::map<std::string, std::map<std::string, waiter>> waiters;
    std::optional<epoch> strict;
};

}  // namespace dibs::simulation::postgres
