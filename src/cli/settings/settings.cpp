// SPDX-License-Identifier: Apache-2.0
#include "cli/settings/settings.hpp"

#include "cli/output/failure.hpp"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace dibs::cli {

namespace {

/// A variable that is set and not empty; the XDG rules treat both alike, and ignore relative paths.
std::optional<std::string> folder_of(const surroundings& where, const char* name) {
    auto value = where.variable(name);
    return value && value->starts_with("/") ? value : std::nullopt;
}

std::string home_of(const surroundings& where) {
    if (auto home = folder_of(where, "HOME")) {
        return *home;
    }
    return where.home;
}

/// A path inside a URL: characters that would start something else are escaped.
std::string url_of_path(const std::string& path) {
    std::string url = "sqlite:";
    for (const char character : path) {
        switch (character) {
            case '%':
                url += "%25";
                break;
            case '?':
                url += "%3F";
                break;
            case '#':
                url += "%23";
                break;
            default:
                url += character;
        }
    }
    return url;
}

}  // namespace

surroundings real_surroundings() {
    surroundings real;
    real.variable = [](const char* name) -> std::optional<std::string> {
        const char* value = std::getenv(name);
        return value == nullptr ? std::nullopt : std::optional<std::string>(value);
    };
    real.root = ::geteuid() == 0;
    if (std::getenv("HOME") == nullptr) {
        const passwd* entry = ::getpwuid(::geteuid());
        real.home = entry != nullptr && entry->pw_dir != nullptr ? entry->pw_dir : "";
    }
    return real;
}

std::vector<std::string> settings_files(const surroundings& where) {
    std::vector<std::string> files{"dibs.toml"};
    if (const auto config = folder_of(where, "XDG_CONFIG_HOME")) {
        files.push_back(*config + "/dibs/config.toml");
    } else if (const auto home = home_of(where); !home.empty()) {
        files.push_back(home + "/.config/dibs/config.toml");
    }
    files.emplace_back("/etc/dibs/config.toml");
    return files;
}

file_settings find_settings(const surroundings& where) {
    for (const auto& path : settings_files(where)) {
        // A file that is there but cannot be read is trouble, not an invitation to use the next
        // one.
        std::error_code ignored;
        if (std::filesystem::exists(std::filesystem::symlink_status(path, ignored))) {
            return read_settings_file(path);
        }
    }
    return {};
}

store_choice choose_store(const std::string* flag,
                          const file_settings& file,
                          const surroundings& where) {
    store_choice chosen;
    if (flag != nullptr) {
        if (flag->empty()) {
            throw usage_error("--store is empty");
        }
        chosen.url = *flag;
        chosen.from = store_choice::source::flag;
    } else if (const auto variable = where.variable("DIBS_STORE")) {
        if (variable->empty()) {
            throw configuration_error(
                "DIBS_STORE is set but empty; set it to a store's URL or unset it");
        }
        chosen.url = *variable;
        chosen.from = store_choice::source::environment;
    } else if (file.store) {
        chosen.url = *file.store;
        chosen.from = store_choice::source::file;
    } else {
        chosen.default_path = default_store_path(where);
        chosen.url = url_of_path(chosen.default_path);
    }
    return chosen;
}

std::string default_store_path(const surroundings& where) {
    if (where.root) {
        return "/var/lib/dibs/locks.db";
    }
    if (const auto state = folder_of(where, "XDG_STATE_HOME")) {
        return *state + "/dibs/locks.db";
    }
    const auto home = home_of(where);
    if (home.empty()) {
        throw configuration_error(
            "no store is configured and this user has no home directory for the default one; use "
            "--store or DIBS_STORE");
    }
    return home + "/.local/state/dibs/locks.db";
}

bool prepare_default_store(const std::string& path) {
    const std::filesystem::path file(path);
    std::error_code error;
    if (std::filesystem::create_directories(file.parent_path(), error) && !error) {
        std::filesystem::permissions(file.parent_path(), std::filesystem::perms::owner_all, error);
    }
    if (error) {
        throw configuration_error("cannot make " + file.parent_path().string() +
                                  " for the default store: " + error.message() +
                                  "; use --store or DIBS_STORE");
    }
    return !std::filesystem::exists(file, error);
}

}  // namespace dibs::cli
