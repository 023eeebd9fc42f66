// SPDX-License-Identifier: Apache-2.0
#pragma once
// A slot is claimed, run if it is ours, and its outcome left.

#include "cli/once_options.hpp"
#include "cli/settings.hpp"

namespace dibs::cli {

/// The exit status, whatever happens; and the status file says the same.
[[nodiscard]] int run_slot(once_options options, store_choice store);

}  // namespace dibs::cli
