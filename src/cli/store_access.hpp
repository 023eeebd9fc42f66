// SPDX-License-Identifier: Apache-2.0
#pragma once
// From settings to an open client, with errors told as the exit statuses of the command.

#include "cli/settings.hpp"

#include <dibs/client.hpp>

#include <string>
#include <system_error>

namespace dibs::cli {

/// 64, 69 or 78.
[[nodiscard]] int status_of(const std::error_code& error) noexcept;

/// Flag, environment, file, built-in. With the built-in store, its folder is made, and whoever
/// makes the file is told once whom it excludes, unless `quiet`.
[[nodiscard]] store_choice settle_store(const std::string* flag,
                                        const file_settings& file,
                                        bool quiet);

/// Errors: failure.
[[nodiscard]] dibs::client open_client(const store_choice& store, const std::string& command);

}  // namespace dibs::cli
