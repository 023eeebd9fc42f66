// SPDX-License-Identifier: Apache-2.0
#pragma once
// What `dibs idempotent` was asked to do, checked.

#include "cli/options/option_table.hpp"
#include "cli/run/run_options.hpp"
#include "cli/settings/settings.hpp"
#include "client/recipes/idempotent_work.hpp"

namespace dibs::cli {

struct idempotent_command_options {
    run_options run;
    detail::work_terms terms;
    bool keep_failures = false;
};

/// Errors: usage_error, one line that names the option; configuration_error for a value of the
/// file.
[[nodiscard]] idempotent_command_options check_idempotent_options(const arguments& found,
                                                                  const file_settings& file);

}  // namespace dibs::cli
