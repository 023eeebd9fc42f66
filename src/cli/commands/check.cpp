// SPDX-License-Identifier: Apache-2.0
// dibs check: whether a fence is still the current one.
#include "cli/options/command_support.hpp"
#include "cli/output/json.hpp"
#include "cli/output/speech.hpp"

#include <array>
#include <string>

namespace dibs::cli {

namespace {

constexpr std::array options{
    option{"fence", 0, "N", "the fence in question; needed"},
    json_option,
    store_option,
    key_option,
    quiet_option,
    help_option,
};

const command_syntax syntax{
    .name = "check",
    .usage = "dibs check [OPTIONS] KEY --fence N",
    .summary =
        "Tells whether the lease of KEY with fence N is held at this moment. A fence of the "
        "holder's block\n"
        "counts.",
    .options = options,
    .operands_max = 1,
    .first_operand = "key",
    .notes =
        "exit status: 0 current; 1 stale; 64 usage; 69 store not reachable; 78 configuration: so "
        "that trouble\n"
        "is not taken for an answer.\n"
        "\n"
        "The answer may be old by the time you read it. What must not be written late, the data "
        "itself has to\n"
        "refuse, by the fence.",
    .examples =
        "  dibs check \"$DIBS_KEY\" --fence \"$DIBS_FENCE\" || exit 1\n"
        "  dibs check nightly-report --fence 1764460800000000 --json",
};

}  // namespace

const command_syntax& check_syntax() {
    return syntax;
}

int check_command(const global_options& global, words given) {
    const auto found = parse_arguments(syntax, given);
    if (helped(syntax, found)) {
        return exit_status::ok;
    }
    const auto key = key_given(syntax, found);
    if (!found.has("fence")) {
        throw usage_error("--fence is missing; see dibs check --help");
    }
    const auto fence = fence_value(found, "fence");
    auto store = use_store(global, found, "dibs check", store_use::existing);
    const auto record = look_at(store, key);
    const bool current = holder_with(record, fence) != nullptr;
    if (found.has("json")) {
        const json_object told{
            {"key", key}, {"fence", fence}, {"current", current}, {"newest_fence", record.fence}};
        deliver(object_json(told) + "\n");
    } else if (!current && !found.has("quiet")) {
        say("fence " + std::to_string(fence) + " is stale: " + quoted_key(key) + " " +
            describe_state(record));
    }
    return current ? exit_status::ok : exit_status::trouble;
}

}  // namespace dibs::cli
