// SPDX-License-Identifier: Apache-2.0
// dibs release: gives a lease back by its handle.
#include "cli/commands/handle_input.hpp"
#include "cli/options/command_support.hpp"
#include "client/leases/handles.hpp"

#include <array>
#include <string>

namespace dibs::cli {

namespace {

constexpr std::array options{
    handle_file_option,
    store_option,
    quiet_option,
    help_option,
};

const command_syntax syntax{
    .name = "release",
    .usage = "dibs release [OPTIONS] [HANDLE | -]",
    .summary =
        "Gives the lease of a handle back that dibs acquire printed. Prints nothing.\n"
        "HANDLE comes from the command line, from stdin (-), from --handle-file or from "
        "$DIBS_HANDLE.",
    .options = options,
    .operands_max = 1,
    .notes =
        "exit status: 0 given back; 64 usage; 69 store not reachable; 78 configuration; 79 the "
        "lease was lost\n"
        "before: the work was not protected to its end.",
    .examples =
        "  DIBS_HANDLE=$handle dibs release\n"
        "  dibs release - < /run/deploy/lease.json",
};

}  // namespace

const command_syntax& release_syntax() {
    return syntax;
}

int release_command(const global_options& global, words given) {
    const auto found = parse_arguments(syntax, given);
    if (helped(syntax, found)) {
        return exit_status::ok;
    }
    const auto handle = handle_given(syntax, found);
    auto store = use_store(global, found, "dibs release", store_use::existing);
    const auto told = detail::release_handle(store.through, handle);
    if (told.error == condition::lease_lost) {
        throw failure(exit_status::lost, told.message);
    }
    if (told.error) {
        throw store_failure(told.error, told.message, store);
    }
    return exit_status::ok;
}

}  // namespace dibs::cli
