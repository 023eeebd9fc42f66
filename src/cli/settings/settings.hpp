// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where settings come from, in this order: flag, environment, dibs.toml, built-in.

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dibs::cli {

/// What a dibs.toml may say. Durations are strings with a unit, as on the command line.
struct file_settings {
    std::string path;  ///< empty: there is no file
    std::optional<std::string> store;
    std::optional<std::chrono::milliseconds> ttl;
    std::optional<std::chrono::milliseconds> grace;
    std::optional<int> held_code;
};

/// Errors: configuration_error with file and line, for text that is not TOML, unknown keys and bad
/// values.
[[nodiscard]] file_settings read_settings_file(const std::string& path);

/// What the outside world says; a parameter, so that tests can say it.
struct surroundings {
    std::function<std::optional<std::string>(const char* name)> variable;
    bool root = false;
    std::string home;  ///< of the user, if $HOME is not set; may be empty
};
[[nodiscard]] surroundings real_surroundings();

/// The files that are looked for; the first one that exists counts.
[[nodiscard]] std::vector<std::string> settings_files(const surroundings& where);

/// The first of them that exists, read.
[[nodiscard]] file_settings find_settings(const surroundings& where);

struct store_choice {
    enum class source { flag, environment, file, built_in };
    std::string url;
    source from = source::built_in;
    std::string default_path;  ///< with built_in: the file
    bool make = true;          ///< its file is made when it is not there
    bool quiet = false;        ///< about that
};

/// Errors: configuration_error, usage_error (an empty flag).
[[nodiscard]] store_choice choose_store(const std::string* flag,
                                        const file_settings& file,
                                        const surroundings& where);

/// Where the store is when nothing was configured. root always has one and the same place, so that
/// its cron jobs and its shells meet there.
[[nodiscard]] std::string default_store_path(const surroundings& where);

/// Makes the folder of the default store, for this user alone. True when the store's file is not
/// there yet.
bool prepare_default_store(const std::string& path);

}  // namespace dibs::cli
