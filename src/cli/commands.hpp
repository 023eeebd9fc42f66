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
[[nodiscard]] const command_syntax& acquire_syntax();
[[nodiscard]] const command_syntax& renew_syntax();
[[nodiscard]] const command_syntax& release_syntax();
[[nodiscard]] const command_syntax& show_syntax();
[[nodiscard]] const command_syntax& watch_syntax();
[[nodiscard]] const command_syntax& break_syntax();
[[nodiscard]] const command_syntax& hold_syntax();
[[nodiscard]] const command_syntax& token_syntax();
[[nodiscard]] const command_syntax& idempotent_syntax();
[[nodiscard]] const command_syntax& check_syntax();
[[nodiscard]] const command_syntax& guard_syntax();
[[nodiscard]] const command_syntax& doctor_syntax();
[[nodiscard]] const command_syntax& bench_syntax();
[[nodiscard]] const command_syntax& config_syntax();
[[nodiscard]] const command_syntax& completion_syntax();
[[nodiscard]] const command_syntax& man_syntax();
[[nodiscard]] const command_syntax& ls_syntax();
[[nodiscard]] const command_syntax& version_syntax();
[[nodiscard]] const command_syntax& demo_syntax();

int run_command(const global_options& global, words given);
int elect_command(const global_options& global, words given);
int once_command(const global_options& global, words given);
int runs_command(const global_options& global, words given);
int ls_command(const global_options& global, words given);
int acquire_command(const global_options& global, words given);
int renew_command(const global_options& global, words given);
int release_command(const global_options& global, words given);
int show_command(const global_options& global, words given);
int watch_command(const global_options& global, words given);
int break_command(const global_options& global, words given);
int hold_command(const global_options& global, words given);
int token_command(const global_options& global, words given);
int idempotent_command(const global_options& global, words given);
int check_command(const global_options& global, words given);
int guard_command(const global_options& global, words given);
int doctor_command(const global_options& global, words given);
int bench_command(const global_options& global, words given);
int config_command(const global_options& global, words given);
int completion_command(words given);
int man_command(words given);
int version_command(words given);
int demo_command(const global_options& global, words given);
/// One of the processes of a demo; not for people.
int demo_worker_command(words given);

}  // namespace dibs::cli
