// SPDX-License-Identifier: Apache-2.0
#pragma once
// Every command there is. The dispatcher, the list in `dibs --help`, the man page and the
// completions are made from this one table, so that none of them can forget a command.

#include "cli/commands.hpp"
#include "cli/options/option_table.hpp"

#include <span>
#include <string_view>

namespace dibs::cli {

struct command_entry {
    std::string_view name;
    std::string_view operands;  ///< as the list of commands shows them: "KEY -- COMMAND"
    std::string_view brief;     ///< empty: not for people, and told nowhere
    const command_syntax& (*syntax)();
    int (*run)(const global_options& global, words given);
};

[[nodiscard]] std::span<const command_entry> catalogue();

/// Of `dibs` itself: what stands before the name of a command.
[[nodiscard]] const command_syntax& main_syntax();

}  // namespace dibs::cli
