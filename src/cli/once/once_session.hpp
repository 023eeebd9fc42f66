// SPDX-License-Identifier: Apache-2.0
#pragma once
// A slot is claimed, run if it is ours, and its outcome left.

#include "cli/once/once_options.hpp"
#include "cli/settings/settings.hpp"

#include <string>

namespace dibs::cli {

struct slot_ending {
    int status = 0;
    std::string outcome;  ///< as in status_report
};

/// Whatever happens; and the status file says the same.
[[nodiscard]] slot_ending run_slot(once_options options, store_choice store);

}  // namespace dibs::cli
