// SPDX-License-Identifier: Apache-2.0
// dibs version
#include "cli/commands.hpp"
#include "cli/options/option_table.hpp"
#include "cli/output/exit_status.hpp"
#include "cli/output/json.hpp"
#include "cli/output/speech.hpp"

#include <dibs/version.hpp>

#include <array>
#include <string>

namespace dibs::cli {

namespace {

constexpr std::array options{
    option{"json", 0, "", "for machines"},
    option{"help", 'h', "", "this text"},
};

const command_syntax syntax{
    .name = "version",
    .usage = "dibs version [--json]",
    .summary = "Tells which release this is.",
    .options = options,
    .examples = "  dibs version --json",
};

}  // namespace

const command_syntax& version_syntax() {
    return syntax;
}

int version_command(words given) {
    const auto found = parse_arguments(syntax, given);
    std::string text;
    if (found.has("help")) {
        text = help_text(syntax);
    } else if (found.has("json")) {
        text = to_json({{"version", DIBS_VERSION_STRING}, {"compiler", __VERSION__}}) + "\n";
    } else {
        text = std::string("dibs ") + DIBS_VERSION_STRING + "\n";
    }
    deliver(text);
    return exit_status::ok;
}

}  // namespace dibs::cli
