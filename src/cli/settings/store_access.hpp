// SPDX-License-Identifier: Apache-2.0
#pragma once
// From settings to an open client, with errors told as the exit statuses of the command.

#include "cli/settings/settings.hpp"

#include <dibs/client.hpp>

#include <string>
#include <system_error>

namespace dibs::cli {

/// 64, 69 or 78.
[[nodiscard]] int status_of(const std::error_code& error) noexcept;

/// Whether a command may be the first one to use a store. One that only looks may not: what a
/// misspelt path then makes is an empty store, in which everything looks free.
enum class store_use { make, existing };

/// Flag, environment, file, built-in. With the built-in store, its folder is made, and whoever
/// makes the file is told once whom it excludes, unless `quiet`.
[[nodiscard]] store_choice settle_store(const std::string* flag,
                                        const file_settings& file,
                                        bool quiet,
                                        store_use use = store_use::make);

/// The built-in store is meant, and nobody has made it yet.
[[nodiscard]] bool is_not_made_yet(const store_choice& store);

/// The same for people: which one, and what makes it.
[[nodiscard]] std::string not_made_yet(const store_choice& store);

/// Whoever makes a file at a terminal is told so, in case its name is misspelt. Errors: failure;
/// store_away, where another try may go well.
[[nodiscard]] dibs::client open_client(const store_choice& store, const std::string& command);

}  // namespace dibs::cli
