// SPDX-License-Identifier: Apache-2.0
#pragma once
// What `dibs once` was asked to do, checked.

#include "cli/option_table.hpp"
#include "cli/run_options.hpp"
#include "cli/settings.hpp"
#include "client/slot_run.hpp"
#include "recipes/schedule.hpp"

#include <optional>

namespace dibs::cli {

/// --every, and the slot of it that this is about.
struct planned_slot {
    recipes::schedule plan;
    recipes::slot bounds;
};

struct once_options {
    run_options run;  ///< its key is the job's slot
    detail::slot_terms terms;
    std::optional<planned_slot> planned;  ///< empty: --slot
    std::optional<int> held_code;
    bool dry_run = false;
    bool condition = false;
};

/// Errors: usage_error, one line that names the option; configuration_error for a value of the
/// file.
[[nodiscard]] once_options check_once_options(const arguments& found, const file_settings& file);

}  // namespace dibs::cli
