// SPDX-License-Identifier: Apache-2.0
#include "cli/catalogue.hpp"

#include "cli/output/speech.hpp"
#include "cli/run/run_options.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace dibs::cli {

namespace {

constexpr std::array commands{
    command_entry{"run",
                  "KEY -- COMMAND",
                  "run COMMAND while holding KEY",
                  run_syntax,
                  run_command},
    command_entry{"once",
                  "JOB -- COMMAND",
                  "run COMMAND once per day, hour … of all hosts",
                  once_syntax,
                  once_command},
    command_entry{"elect",
                  "KEY -- COMMAND",
                  "stand by, and run COMMAND while leading",
                  elect_syntax,
                  elect_command},
    command_entry{"token",
                  "get NAME -- COMMAND",
                  "a valid token; COMMAND fetches a new one when due",
                  token_syntax,
                  token_command},
    command_entry{"idempotent",
                  "KEY … -- COMMAND",
                  "run COMMAND once per KEY, and replay its output",
                  idempotent_syntax,
                  idempotent_command},
    command_entry{"runs", "[JOB]", "what became of the slots of a job", runs_syntax, runs_command},
    command_entry{"acquire",
                  "KEY",
                  "take KEY for a script; prints a handle",
                  acquire_syntax,
                  acquire_command},
    command_entry{"renew",
                  "[HANDLE | -]",
                  "prolong the lease of a handle",
                  renew_syntax,
                  renew_command},
    command_entry{"release",
                  "[HANDLE | -]",
                  "give the lease of a handle back",
                  release_syntax,
                  release_command},
    command_entry{"ls", "[PREFIX]", "who holds what, and how many wait", ls_syntax, ls_command},
    command_entry{"show", "KEY", "all that the store knows of KEY", show_syntax, show_command},
    command_entry{"watch", "[PREFIX]", "what changes, as it happens", watch_syntax, watch_command},
    command_entry{"check",
                  "KEY --fence N",
                  "is this fence still current?",
                  check_syntax,
                  check_command},
    command_entry{"hold",
                  "KEY --for 2h",
                  "nobody may acquire KEY for a while",
                  hold_syntax,
                  hold_command},
    command_entry{"break",
                  "KEY --fence N",
                  "take a lease away from its holder",
                  break_syntax,
                  break_command},
#ifdef DIBS_WITH_POSTGRES
    command_entry{"guard",
                  "install | sql",
                  "let PostgreSQL refuse late writers",
                  guard_syntax,
                  guard_command},
#endif
    command_entry{"doctor", "", "is anything wrong with the store?", doctor_syntax, doctor_command},
    command_entry{"bench", "", "how fast this store is here", bench_syntax, bench_command},
    command_entry{"config",
                  "show",
                  "which settings are in force, and why",
                  config_syntax,
                  config_command},
    command_entry{"completion",
                  "bash | zsh | fish",
                  "a script that completes commands and options",
                  completion_syntax,
                  [](const global_options&, words given) { return completion_command(given); }},
    command_entry{"demo", "NAME", "see what goes wrong without a lease", demo_syntax, demo_command},
    command_entry{"version",
                  "",
                  "which release this is",
                  version_syntax,
                  [](const global_options&, words given) { return version_command(given); }},
    command_entry{"man",
                  "",
                  "",
                  man_syntax,
                  [](const global_options&, words given) { return man_command(given); }},
    command_entry{"demo-worker",
                  "",
                  "",
                  demo_syntax,
                  [](const global_options&, words given) { return demo_worker_command(given); }},
};

constexpr std::array options{
    option{"store", 0, "URL", "the store (default: $DIBS_STORE, the settings, an SQLite file)"},
    option{"version", 'V', "", "as dibs version"},
    option{"help", 'h', "", "this text"},
};

std::string list_of_commands() {
    constexpr std::size_t column = 32;
    std::string text = "Lets one of many processes at a time do a piece of work.\n\ncommands:";
    for (const auto& one : commands) {
        if (!one.brief.empty()) {
            std::string left = "  " + std::string(one.name) + " " + std::string(one.operands);
            left = padded(left + " ", column);
            text += "\n" + left + std::string(one.brief);
        }
    }
    return text;
}

}  // namespace

std::span<const command_entry> catalogue() {
    return commands;
}

const command_syntax& main_syntax() {
    static const std::string summary = list_of_commands();
    static const command_syntax syntax{
        .name = "",
        .usage = "dibs [--store URL] COMMAND …",
        .summary = summary,
        .options = options,
        .operands_max = 0,
        .command_follows = true,
        .notes =
            "dibs COMMAND --help tells more about each; man dibs tells it all.\n"
            "\n"
            "A DURATION is a number and a unit: 500ms, 30s, 5m, 2h, 1d.",
        .examples =
            "  dibs run nightly-report -- ./report.sh\n"
            "  dibs demo duplicate-jobs",
    };
    return syntax;
}

}  // namespace dibs::cli
