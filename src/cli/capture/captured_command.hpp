// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs a command to its end and reads what it writes.

#include "cli/supervisor/signals.hpp"

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace dibs::cli {

struct captured_run {
    int status = 0;  ///< as a shell would tell it: 128 and more for a signal, 126, 127
    bool timed_out = false;
    bool too_long = false;  ///< it wrote more than is read
    std::string output;
};

/// `input` is its stdin, `output` what it has written to its stdout when it ends, whoever else still has that open; stderr
/// stays ours. It is the head of a process group of its own, so that a Ctrl-C at the terminal is for dibs alone. After
/// `patience` that group gets TERM, and soon after KILL. Errors: failure (no process or memory to be had).
[[nodiscard]] captured_run run_captured(const signal_desk& desk,
                                        const std::vector<std::string>& command,
                                        const std::vector<std::string>& environment,
                                        std::string_view input,
                                        std::chrono::milliseconds patience);

}  // namespace dibs::cli
