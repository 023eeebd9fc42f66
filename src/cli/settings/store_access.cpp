// SPDX-License-Identifier: Apache-2.0
#include "cli/settings/store_access.hpp"

#include "cli/output/failure.hpp"
#include "cli/output/redact.hpp"
#include "cli/output/speech.hpp"
#include "client/open_client.hpp"
#include "core/key.hpp"
#include "store/url.hpp"

#include <unistd.h>

#include <filesystem>
#include <utility>

namespace dibs::cli {

int status_of(const std::error_code& error) noexcept {
    if (error == errc::invalid_key || error == errc::invalid_argument) {
        return exit_status::usage;
    }
    if (error == condition::invalid_argument || error == condition::unsupported) {
        return exit_status::configuration;
    }
    return exit_status::unavailable;
}

store_choice settle_store(const std::string* flag,
                          const file_settings& file,
                          bool quiet,
                          store_use use) {
    auto chosen = choose_store(flag, file, real_surroundings());
    chosen.quiet = quiet;
    chosen.make = use == store_use::make;
    if (chosen.make && chosen.from == store_choice::source::built_in &&
        prepare_default_store(chosen.default_path) && !quiet) {
        say("no store is configured: made " + chosen.default_path +
            ", which excludes on this host and for this user only (--store or DIBS_STORE choose "
            "another)");
    }
    return chosen;
}

bool is_not_made_yet(const store_choice& store) {
    std::error_code error;
    return store.from == store_choice::source::built_in && !store.default_path.empty() &&
           !std::filesystem::exists(store.default_path, error) && !error;
}

std::string not_made_yet(const store_choice& store) {
    return "no store is configured, and " + core::printable(store.default_path, 500) +
           " is not made yet: the first lease or hold makes it (dibs run, once, elect, acquire or "
           "hold)";
}

namespace {

/// The file of a store that is configured and is not there; empty for any other.
std::string new_file(const store_choice& chosen) {
    std::string why;
    const auto where = store::parse_url(chosen.url, why);
    std::error_code error;
    const bool is_new = where && where->scheme == "sqlite" &&
                        chosen.from != store_choice::source::built_in &&
                        !std::filesystem::exists(where->rest, error) && !error;
    return is_new ? where->rest : std::string{};
}

/// Of stores that whoever comes first makes.
bool is_made(std::string_view scheme) {
    return scheme == "sqlite" || scheme.starts_with("postgres");
}

/// So that the store is not made. A URL that says something about that itself keeps it.
std::string for_looking(const std::string& url) {
    std::string why;
    const auto where = store::parse_url(url, why);
    if (!where || !is_made(where->scheme) || where->options.contains("create")) {
        return url;
    }
    return url + (where->options.empty() && url.find('?') == std::string::npos ? "?" : "&") +
           "create=no";
}

}  // namespace

dibs::client open_client(const store_choice& store, const std::string& command) {
    if (!store.make && is_not_made_yet(store)) {
        throw failure(exit_status::unavailable, not_made_yet(store));
    }
    client_options options;
    options.command(command);
    std::error_code error;
    std::string message;
    const bool talks = store.make && !store.quiet && ::isatty(STDERR_FILENO) == 1;
    const auto made = talks ? new_file(store) : std::string{};
    auto opened = detail::open_client(
        store.make ? store.url : for_looking(store.url), std::move(options), error, message);
    if (!opened) {
        // Nothing of the command line has been looked at yet: what is wrong is the store.
        const int status = status_of(error);
        const auto why = message.empty() ? redact_url(store.url) + ": " + error.message() : message;
        if (error == condition::retryable) {
            throw store_away(why);
        }
        throw failure(status == exit_status::usage ? exit_status::configuration : status, why);
    }
    if (!made.empty()) {
        say("made " + core::printable(made, 500) + ", a new store, in which everything is free");
    }
    return std::move(*opened);
}

}  // namespace dibs::cli
