// SPDX-License-Identifier: Apache-2.0
#include "cli/store_access.hpp"

#include "cli/failure.hpp"
#include "cli/redact.hpp"
#include "cli/speech.hpp"
#include "client/attempt.hpp"

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

store_choice settle_store(const std::string* flag, const file_settings& file, bool quiet) {
    auto chosen = choose_store(flag, file, real_surroundings());
    if (chosen.from == store_choice::source::built_in &&
        prepare_default_store(chosen.default_path) && !quiet) {
        say("no store is configured: made " + chosen.default_path +
            ", which excludes on this host and for this user only (--store or DIBS_STORE choose "
            "another)");
    }
    return chosen;
}

dibs::client open_client(const store_choice& store, const std::string& command) {
    client_options options;
    options.command(command);
    std::error_code error;
    std::string message;
    auto opened = detail::open_client(store.url, std::move(options), error, message);
    if (!opened) {
        // Nothing of the command line has been looked at yet: what is wrong is the store.
        const int status = status_of(error);
        throw failure(status == exit_status::usage ? exit_status::configuration : status,
                      message.empty() ? redact_url(store.url) + ": " + error.message() : message);
    }
    return std::move(*opened);
}

}  // namespace dibs::cli
