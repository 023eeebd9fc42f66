// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which slot it is now, and whether it would run: --dry-run and --condition of `dibs once`.

#include "cli/once/once_options.hpp"
#include "cli/settings/settings.hpp"

namespace dibs::cli {

/// Tells, and returns the exit status. Changes nothing in the store. Errors: failure.
[[nodiscard]] int look_only(const once_options& options, const store_choice& store);

}  // namespace dibs::cli
