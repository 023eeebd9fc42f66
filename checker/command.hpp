// SPDX-License-Identifier: Apache-2.0
#pragma once
// The command dibs-check-history, apart from its process.

#include <istream>
#include <ostream>
#include <string>
#include <vector>

namespace dibs_checker {

enum exit_status : int {
    exit_clean = 0,
    exit_violated = 1,
    exit_undecided = 2,
    exit_usage = 64,
    exit_bad_history = 65,
    exit_no_output = 73
};

/// `words`: the arguments without the command's own name.
[[nodiscard]] int run_command(const std::vector<std::string>& words,
                              std::istream& in,
                              std::ostream& out,
                              std::ostream& err);

}  // namespace dibs_checker
