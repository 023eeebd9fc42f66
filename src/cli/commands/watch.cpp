// SPDX-License-Identifier: Apache-2.0
// dibs watch: tells what changes, until it is interrupted.
#include "cli/commands/watched_changes.hpp"
#include "cli/options/command_support.hpp"
#include "cli/options/duration.hpp"
#include "cli/output/json.hpp"
#include "cli/output/speech.hpp"
#include "cli/supervisor/signals.hpp"
#include "core/key.hpp"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace dibs::cli {

namespace {

using std::chrono::milliseconds;

constexpr std::array options{
    option{"every",
           0,
           "DURATION",
           "how often to look, where the store cannot tell of changes\n(default 500ms; at least "
           "50ms)"},
    json_option,
    store_option,
    quiet_option,
    help_option,
};

const command_syntax syntax{
    .name = "watch",
    .usage = "dibs watch [OPTIONS] [PREFIX]",
    .summary =
        "Prints a line for each change of the keys that begin with PREFIX, beginning with how "
        "things are:\n"
        "granted, released, expired, hold-set, hold-lifted. Goes on until it is interrupted.",
    .options = options,
    .operands_max = 1,
    .notes =
        "The embedded store is looked at; what comes and goes between two looks is told by its "
        "fence alone.\n"
        "A lease whose process died or that an operator ended counts as released.\n"
        "\n"
        "exit status: 0 interrupted, or nobody reads any more; 64 usage; 69 store not reachable; "
        "74 the\n"
        "output cannot be written; 78 configuration.",
    .examples =
        "  dibs watch invoice:\n"
        "  dibs watch --json | jq -c 'select(.change == \"granted\")'",
};

std::string as_line(const change& one) {
    std::string text = show_instant(one.when) + "  " + std::string(one.what);
    text.resize(std::max<std::size_t>(text.size(), 38), ' ');
    text += core::printable(one.key);
    if (one.fence != 0) {
        text += "  fence " + std::to_string(one.fence);
    }
    if (one.who && is_stranger(*one.who)) {
        text += "  another program";
    } else if (one.who) {
        text += "  " + core::printable(one.who->host) + ":" + std::to_string(one.who->pid) + " " +
                core::printable(one.who->user) + "  " + core::printable(one.who->command);
    }
    if (!one.reason.empty()) {
        text += "  " + core::printable(one.reason);
    }
    return text + "\n";
}

std::string as_json(const change& one) {
    json_object told{
        {"time", show_instant(one.when)}, {"change", std::string(one.what)}, {"key", one.key}};
    if (one.fence != 0) {
        told.emplace_back("fence", one.fence);
    }
    if (one.who) {
        told.emplace_back("host", one.who->host);
        told.emplace_back("pid", one.who->pid);
        told.emplace_back("user", one.who->user);
        told.emplace_back("command", one.who->command);
    }
    if (!one.reason.empty()) {
        told.emplace_back("reason", one.reason);
    }
    return object_json(told, json_layout::one_line) + "\n";
}

/// Waits for the next look. False: it is over, by a signal or because nobody reads.
bool pause(signal_desk& desk, milliseconds length) {
    const auto until = std::chrono::steady_clock::now() + length;
    while (true) {
        const auto left = std::chrono::ceil<milliseconds>(until - std::chrono::steady_clock::now());
        if (left <= milliseconds::zero()) {
            return true;
        }
        // No events are asked for on stdout: an error, its reader gone, is told all the same.
        std::array<pollfd, 2> ready{pollfd{desk.descriptor(), POLLIN, 0},
                                    pollfd{STDOUT_FILENO, 0, 0}};
        if (::poll(ready.data(), ready.size(), static_cast<int>(left.count())) <= 0) {
            continue;
        }
        if ((ready[1].revents & POLLERR) != 0) {
            return false;
        }
        while (const auto signal = desk.take()) {
            if (signal->number == SIGTSTP) {
                ::raise(SIGSTOP);
            } else if (signal_desk::ends_by_default(signal->number) &&
                       !desk.ignored_before(signal->number)) {
                return false;
            }
        }
    }
}

}  // namespace

const command_syntax& watch_syntax() {
    return syntax;
}

int watch_command(const global_options& global, words given) {
    const auto found = parse_arguments(syntax, given);
    if (helped(syntax, found)) {
        return exit_status::ok;
    }
    milliseconds every{500};
    if (found.has("every")) {
        every = duration_value(found, "every");
        if (every < milliseconds{50} || every > std::chrono::hours{1}) {
            throw usage_error("--every " + as_given(*found.value("every")) +
                              ": must be from 50ms to 1h");
        }
    }
    const std::string prefix = found.operands.empty() ? "" : found.operands.front();
    // Before the first thread, and so before the client.
    signal_desk desk;
    auto store = use_store(global, found, "dibs watch", store_use::existing);
    watched_changes seen;
    do {
        std::vector<dibs::record> records;
        try {
            records = store.through.list(prefix);
        } catch (const std::system_error& error) {
            throw store_failure(error.code(), error.what(), store);
        }
        std::string text;
        for (const auto& one : seen.look(std::move(records), std::chrono::system_clock::now())) {
            text += found.has("json") ? as_json(one) : as_line(one);
        }
        try {
            deliver(text);
        } catch (const reader_gone&) {
            return exit_status::ok;  // an end as good as any
        }
    } while (pause(desk, every));
    return exit_status::ok;
}

}  // namespace dibs::cli
