// SPDX-License-Identifier: Apache-2.0
#pragma once
// From the start of the child to its end: signals go in, TERM and KILL go out in time, and what
// became of it comes back.

#include "cli/supervisor/child.hpp"
#include "cli/supervisor/guard.hpp"
#include "cli/supervisor/signals.hpp"
#include "cli/supervisor/stopper.hpp"

#include <functional>
#include <stop_token>
#include <string_view>

namespace dibs::cli {

struct supervision {
    child_plan child;
    stop_limits limits;
    std::stop_token lost;  ///< of the lease
    /// Told what happens, for -v. May be empty.
    std::function<void(std::string_view)> tell;
};

struct ending {
    enum class kind { ended, not_found, cannot_execute };
    kind how = kind::ended;
    int status = 0;      ///< as a shell tells it: the child's own, or 128 + signal
    int exec_error = 0;  ///< with not_found and cannot_execute
    std::string tried;   ///< with them: the file
    int killed_by = 0;   ///< signal, or 0
    stop_cause stopped = stop_cause::none;  ///< why it was told to stop
    std::string
        store_trouble;  ///< under a lease: what the store said to its last renewal, if that failed
};

/// Returns when the direct child has ended and, if it was told to stop, when nobody of its group is
/// left. Members that a child leaves behind when it ends by itself go on, as with a shell.
[[nodiscard]] ending supervise(const supervision& what, signal_desk& desk, guard& guarded);

}  // namespace dibs::cli
