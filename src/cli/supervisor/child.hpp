// SPDX-License-Identifier: Apache-2.0
#pragma once
// Starting the command: no shell, a process group of its own, the caller's signals and descriptors,
// and nothing of ours but the descriptor that keeps the lease alive as long as its tree lives.

#include "cli/supervisor/signals.hpp"

#include <sys/types.h>

#include <string>
#include <vector>

namespace dibs::cli {

struct child_plan {
    std::vector<std::string> command;      ///< not empty
    std::vector<std::string> environment;  ///< NAME=value, all of it
    int liveness = -1;                     ///< to be inherited; -1: none
    int guard_socket = -1;                 ///< where it registers; -1: no guard
    int output = -1;                       ///< its stdout; -1: ours
    int errors = -1;                       ///< its stderr; -1: ours
};

struct started_child {
    pid_t process = -1;
    int descriptor = -1;  ///< pidfd, for the caller to close; -1 on a kernel without them
    int exec_error = 0;   ///< errno; then there is no child any more
    std::string tried;    ///< with exec_error: the file that could not be executed
};

/// The files that a command name stands for, in the order of PATH, as execvp(3) would try them.
[[nodiscard]] std::vector<std::string> candidates_for(const std::string& name, const char* path);

/// Starts it. Every descriptor of ours must be close-on-exec. Safe with other threads around:
/// between fork and exec only async-signal-safe calls are made. Errors: std::system_error when
/// there can be no new process.
[[nodiscard]] started_child start_child(const child_plan& plan, const signal_desk& desk);

}  // namespace dibs::cli
