// SPDX-License-Identifier: Apache-2.0
#pragma once
// What `dibs run` was asked to do, checked.

#include "cli/options/option_table.hpp"
#include "cli/output/exit_status.hpp"
#include "cli/settings/settings.hpp"

#include <dibs/options.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dibs::cli {

inline constexpr std::chrono::milliseconds run_ttl_min = std::chrono::seconds{1};
inline constexpr std::chrono::milliseconds run_ttl_max = std::chrono::hours{24};

struct run_options {
    std::string key;
    std::vector<std::string> also;  ///< further keys, taken with it or not at all
    dibs::mode mode = exclusive;    ///< of each key
    std::vector<std::string> command;
    std::chrono::milliseconds ttl = std::chrono::seconds{30};
    std::chrono::milliseconds grace{};
    std::chrono::milliseconds renew_every{};
    std::chrono::milliseconds wait{};  ///< dibs::forever: no limit
    bool queue = false;                ///< wait in the order of arrival
    std::optional<std::chrono::milliseconds> max_hold;
    std::optional<std::chrono::milliseconds> max_runtime;
    bool renew = true;
    int held_code = exit_status::held;
    int ended_code = exit_status::ok;  ///< of `elect`: when the command ended with 0 by itself
    bool leads = false;                ///< for `elect`: the fence is the term too
    std::string status_file;
    std::optional<std::string> store;  ///< the flag
    bool verbose = false;
    bool quiet = false;
};

[[nodiscard]] const command_syntax& run_syntax();

/// Errors: usage_error, one line that names the option; configuration_error for a value of the
/// file.
[[nodiscard]] run_options check_run_options(const arguments& given, const file_settings& file);

/// The value of an option that was given. Errors: usage_error, one line that names the option.
[[nodiscard]] std::chrono::milliseconds duration_option(const arguments& given,
                                                        std::string_view name);

/// Where --status-file or --status-fd wants the report; empty: nowhere. Errors: usage_error.
[[nodiscard]] std::string report_path(const arguments& given);

}  // namespace dibs::cli
