// SPDX-License-Identifier: Apache-2.0
#pragma once
// The commands. Each takes the words after its name and returns the exit status; errors are
// `failure`s.

#include <span>
#include <string>

namespace dibs::cli {

/// Options that stand before the name of the command.
struct global_options {
    const std::string* store = nullptr;
};

using words = std::span<const std::string>;

struct command_syntax;

[[nodiscard]] const command_syntax& elect_syntax();
[[nodiscard]] const command_syntax& once_syntax();
[[nodiscard]] const command_syntax& runs_syntax();
[[nodiscard]] const command_syntax& ls_syntax();
[[nodiscard]] const command_syntax& version_syntax();
[[nodiscard]] const command_syntax& demo_syntax();

int run_command(const global_options& global, words given);
int elect_command(const global_options& global, words given);
int once_command(const global_options& global, words given);
int runs_command(const global_options& global, words given);
int ls_command(const global_options& global, words given);
int version_command(words given);
int demo_command(const global_options& global, words given);
/// One of the processes of a demo; not for people.
int demo_worker_command(words given);

}  // namespace dibs::cli
