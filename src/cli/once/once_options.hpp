// SPDX-License-Identifier: Apache-2.0
#pragma once
// What `dibs once` was asked to do, checked.

#include "cli/options/option_table.hpp"
#include "cli/run/run_options.hpp"
#include "cli/settings/settings.hpp"
#include "client/recipes/slot_run.hpp"
#include "recipes/once/due_slots.hpp"
#include "recipes/once/schedule.hpp"

#include <cstddef>
#include <optional>

namespace dibs::cli {

/// --every or --cron, and the slot of it that this is about.
struct planned_slot {
    recipes::schedule plan;
    recipes::slot bounds;
};

struct once_options {
    run_options run;  ///< its key is the job's slot
    detail::slot_terms terms;
    std::optional<planned_slot> planned;  ///< empty: --slot
    recipes::due_terms due;
    std::optional<int> held_code;
    std::size_t keep_output = 0;  ///< bytes; 0: nothing
    bool dry_run = false;
    bool condition = false;
};

/// The same for another slot of the schedule.
[[nodiscard]] once_options for_slot(once_options options, const recipes::slot& which);

/// Errors: usage_error, one line that names the option; configuration_error for a value of the
/// file.
[[nodiscard]] once_options check_once_options(const arguments& found, const file_settings& file);

}  // namespace dibs::cli
