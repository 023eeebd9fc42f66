// SPDX-License-Identifier: Apache-2.0
// dibs renew: prolongs a lease by its handle.
#include "cli/commands/handle_input.hpp"
#include "cli/options/command_support.hpp"
#include "cli/output/json.hpp"
#include "cli/output/speech.hpp"
#include "client/leases/handles.hpp"

#include <dibs/options.hpp>

#include <array>
#include <chrono>
#include <string>

namespace dibs::cli {

namespace {

constexpr std::array options{
    option{"ttl", 0, "DURATION", "how long the lease lasts from now on (default 30s)"},
    handle_file_option,
    json_option,
    store_option,
    quiet_option,
    help_option,
};

const command_syntax syntax{
    .name = "renew",
    .usage = "dibs renew [OPTIONS] [HANDLE | -]",
    .summary =
        "Prolongs the lease of a handle that dibs acquire printed. The handle stays good.\n"
        "HANDLE comes from the command line, from stdin (-), from --handle-file or from "
        "$DIBS_HANDLE.",
    .options = options,
    .operands_max = 1,
    .notes =
        "exit status: 0 renewed; 64 usage; 69 store not reachable; 78 configuration; 79 the lease "
        "is lost:\n"
        "expired, given back, taken over by an application, or ended by an operator.",
    .examples =
        "  DIBS_HANDLE=$handle dibs renew --ttl 10m\n"
        "  dibs renew --handle-file /run/deploy/lease.json --json",
};

}  // namespace

const command_syntax& renew_syntax() {
    return syntax;
}

int renew_command(const global_options& global, words given) {
    const auto found = parse_arguments(syntax, given);
    if (helped(syntax, found)) {
        return exit_status::ok;
    }
    const auto handle = handle_given(syntax, found);
    auto ttl = find_settings(real_surroundings()).ttl.value_or(acquire_options{}.ttl);
    if (found.has("ttl")) {
        ttl = duration_value(found, "ttl");
    }
    auto store = use_store(global, found, "dibs renew", store_use::existing);
    check_ttl(store, found, ttl);
    const auto told = detail::renew_handle(store.through, handle, ttl);
    if (told.error == condition::lease_lost) {
        throw failure(exit_status::lost, told.message);
    }
    if (told.error) {
        throw store_failure(told.error, told.message, store);
    }
    if (found.has("json")) {
        deliver(object_json({{"key", told.key},
                             {"fence", told.fence},
                             {"expires_in_ms", told.remaining.count()}}) +
                "\n");
    }
    return exit_status::ok;
}

}  // namespace dibs::cli
