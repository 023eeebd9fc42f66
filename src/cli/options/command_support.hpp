// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the commands about a key have in common: their usual options, values out of them, and a
// client for their store.

#include "cli/commands.hpp"
#include "cli/options/option_table.hpp"
#include "cli/output/failure.hpp"
#include "cli/settings/awaited_store.hpp"
#include "cli/settings/store_access.hpp"

#include <dibs/client.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>

namespace dibs::cli {

inline constexpr option store_option{
    "store",
    0,
    "URL",
    "the store (default: $DIBS_STORE, the settings, an SQLite file)"};
inline constexpr option json_option{"json", 0, "", "for machines"};
inline constexpr option key_option{"key", 0, "KEY", "the key, when it begins with a dash"};
inline constexpr option quiet_option{"quiet", 'q', "", "tell nothing but errors"};
inline constexpr option help_option{"help", 'h', "", "this text"};

/// True when help was asked for, and has been printed.
[[nodiscard]] bool helped(const command_syntax& syntax, const arguments& found);

/// KEY or --key. Errors: usage_error.
[[nodiscard]] std::string key_given(const command_syntax& syntax, const arguments& found);

// Values of options that were given. Errors: usage_error, naming the option.
[[nodiscard]] std::chrono::milliseconds duration_value(const arguments& found,
                                                       std::string_view name);
[[nodiscard]] std::uint64_t fence_value(const arguments& found, std::string_view name);
[[nodiscard]] int held_code_value(const std::string& text);

/// An open store, and what is to be told about it.
struct store_in_use {
    dibs::client through;
    file_settings file;
    std::string url;
    std::string shown;  ///< its URL, secrets blanked
};

/// The store of a command, by flag, environment, file or default. `command`: what others are told
/// about this process. Errors: failure.
[[nodiscard]] store_in_use use_store(const global_options& global,
                                     const arguments& found,
                                     const std::string& command,
                                     store_use use = store_use::make);
/// The same for a command that waits for a key. Null: stopped.
[[nodiscard]] std::optional<store_in_use> use_awaited_store(const global_options& global,
                                                            const arguments& found,
                                                            const std::string& command,
                                                            const store_wait& terms,
                                                            const std::stop_token& stop);

/// Whether the store allows this ttl, which came from --ttl, from the file or from us.
/// Errors: failure, naming the limits.
void check_ttl(const store_in_use& store, const arguments& found, std::chrono::milliseconds ttl);

/// What an error of the store means for the exit status, as one line.
[[nodiscard]] failure store_failure(const std::error_code& error,
                                    const std::string& message,
                                    const store_in_use& store);

/// The record of a key, an empty one when the store has none. Errors: failure.
[[nodiscard]] dibs::record look_at(store_in_use& store, const std::string& key);

/// Null: nobody has this fence, or one of whose block it is.
[[nodiscard]] const dibs::holder* holder_with(const dibs::record& record, std::uint64_t fence);

/// How things stand with a key, for people: `is held by …`, `is on hold …` or `is free`.
[[nodiscard]] std::string describe_state(const dibs::record& record);

}  // namespace dibs::cli
