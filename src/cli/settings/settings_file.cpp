// SPDX-License-Identifier: Apache-2.0
// Reads dibs.toml. Apart from settings.cpp, because the TOML library takes long to compile.
#include "cli/options/duration.hpp"
#include "cli/output/failure.hpp"
#include "cli/settings/settings.hpp"

#include <sys/stat.h>
#include <toml++/toml.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>

namespace dibs::cli {

namespace {

[[noreturn]] void refuse(const std::string& path,
                         const toml::source_region& where,
                         const std::string& why) {
    throw configuration_error(path + ":" + std::to_string(where.begin.line) + ": " + why);
}

std::string text_of(const std::string& path, const std::string& key, const toml::node& value) {
    if (const auto* text = value.as_string(); text != nullptr && !text->get().empty()) {
        return text->get();
    }
    refuse(path, value.source(), key + " must be a text in quotes, and not empty");
}

std::chrono::milliseconds duration_of(const std::string& path,
                                      const std::string& key,
                                      const toml::node& value) {
    if (!value.is_string()) {
        refuse(path, value.source(), key + " must be a duration in quotes, such as \"30s\"");
    }
    try {
        return parse_duration(value.as_string()->get());
    } catch (const std::invalid_argument& fault) {
        refuse(path, value.source(), key + " " + fault.what());
    }
}

/// Whoever writes the file chooses the store, and with another store nobody is excluded.
void refuse_of_others(const std::string& path) {
    struct stat found {};
    if (::stat(path.c_str(), &found) != 0 || S_ISCHR(found.st_mode)) {
        return;
    }
    const auto me = ::geteuid();
    if (found.st_uid != 0 && found.st_uid != me) {
        throw configuration_error(path + ": belongs to user " + std::to_string(found.st_uid) +
                                  ", who could choose another store for user " +
                                  std::to_string(me) +
                                  "; give it to that user or to root (chown), or remove it");
    }
    if ((found.st_mode & S_IWOTH) != 0) {
        throw configuration_error(
            path + ": can be written by everybody, who could choose another store; chmod o-w it");
    }
}

}  // namespace

file_settings read_settings_file(const std::string& path) {
    // Looked at before it is opened: a pipe would keep us waiting for a writer.
    std::error_code error;
    const auto what = std::filesystem::status(path, error);
    if (!std::filesystem::is_regular_file(what) && !std::filesystem::is_character_file(what)) {
        throw configuration_error(
            path + ": " +
            (std::filesystem::exists(what) ? "is not a file" : "is a link that leads nowhere") +
            "; make it a file of settings, or remove it");
    }
    refuse_of_others(path);
    errno = 0;
    std::ifstream stream(path);
    if (!stream) {
        throw configuration_error(path + ": cannot be read: " + std::strerror(errno) +
                                  "; let this user read it");
    }
    file_settings found;
    found.path = path;
    try {
        const auto table = toml::parse(stream, path);
        for (const auto& [name, value] : table) {
            const std::string key(name.str());
            if (key == "store") {
                found.store = text_of(path, key, value);
            } else if (key == "ttl") {
                found.ttl = duration_of(path, key, value);
            } else if (key == "grace") {
                found.grace = duration_of(path, key, value);
            } else if (key == "held_code") {
                const auto* number = value.as_integer();
                if (number == nullptr || number->get() < 0 || number->get() > 255) {
                    refuse(path, value.source(), "held_code must be a number from 0 to 255");
                }
                found.held_code = static_cast<int>(number->get());
            } else {
                refuse(path,
                       name.source(),
                       "unknown key: " + key + " (known: store, ttl, grace, held_code)");
            }
        }
    } catch (const toml::parse_error& fault) {
        refuse(
            path,
            fault.source(),
            std::string(fault.description()) +
                "; a text is written in quotes, as in store = \"sqlite:/var/lib/jobs/locks.db\"");
    }
    return found;
}

}  // namespace dibs::cli
