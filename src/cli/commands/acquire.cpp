// SPDX-License-Identifier: Apache-2.0
// dibs acquire: a detached lease as a handle, for scripts.
#include "cli/options/command_support.hpp"
#include "cli/options/common_options.hpp"
#include "cli/options/duration.hpp"
#include "cli/output/json.hpp"
#include "cli/output/redact.hpp"
#include "cli/output/speech.hpp"
#include "cli/run/waiting_line.hpp"
#include "cli/supervisor/boot_time.hpp"
#include "cli/supervisor/interruption.hpp"
#include "cli/supervisor/signals.hpp"
#include "client/attempt.hpp"
#include "client/leases/handles.hpp"

#include <dibs/options.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace dibs::cli {

namespace {

using std::chrono::milliseconds;

constexpr std::array options{
    option{
        "wait",
        'w',
        "DURATION",
        "wait this long for the key, and for its server;\n`forever` is allowed (default: one try)"},
    common::queue_option,
    common::shared,
    common::permits,
    common::take,
    option{"ttl", 0, "DURATION", "how long the lease lasts unless it is renewed (default 30s)"},
    option{"held-code", 'E', "N", "exit with N instead of 75 when somebody else holds the key"},
    json_option,
    store_option,
    key_option,
    option{"verbose", 'v', "", "also tell who holds the key, or until when it is ours"},
    quiet_option,
    help_option,
};

const command_syntax syntax{
    .name = "acquire",
    .usage = "dibs acquire [OPTIONS] KEY",
    .summary =
        "Takes KEY for a script, and prints a handle for dibs renew and dibs release.\n"
        "Nobody renews the lease for you, and it outlives this process: it ends by dibs release, "
        "or by\n"
        "its ttl. Where one command is to be protected, dibs run does all of that.",
    .options = options,
    .operands_max = 1,
    .first_operand = "key",
    .notes =
        "exit status: 0 taken; 64 usage; 69 store not reachable; 74 the handle could not be "
        "written, and the\n"
        "lease was given back; 75 held or wait over; 78 configuration.\n"
        "\n"
        "The handle is a secret: whoever has it can prolong and end the lease. It is of no use as "
        "a fence:\n"
        "--json tells that one.",
    .examples =
        "  handle=$(dibs acquire deploy --ttl 10m) || exit\n"
        "  dibs acquire deploy --wait 1m --json > /run/deploy/lease.json\n"
        "  handle=$(dibs acquire --permits 3 licences --ttl 1h) || exit",
};

std::string who_stands_in_the_way(const detail::attempt& found,
                                  const std::string& key,
                                  const store_in_use& store) {
    if (!found.holders.empty()) {
        return "is held by " + describe_holders(found.holders);
    }
    if (found.blocked) {
        return "is on hold " + describe_hold(found.blocked_reason, found.retry_after) + "; store " +
               store.shown + "; " + how_to_lift(key);
    }
    return found.done          ? "is done: a result is kept that is still fresh"
           : found.queue_first ? std::string(first_the_queue)
                               : "was held by somebody else";
}

/// This process is gone when somebody asks who holds the key: the script that called it counts.
std::string described_caller() {
    std::ifstream file("/proc/" + std::to_string(::getppid()) + "/cmdline", std::ios::binary);
    std::vector<std::string> words;
    for (std::string word; std::getline(file, word, '\0');) {
        words.push_back(std::move(word));
    }
    return "dibs acquire" +
           (words.empty() ? std::string{} : ", called by " + redact_command(words));
}

acquire_options terms_given(const arguments& found, const file_settings& file) {
    acquire_options wanted;
    wanted.detached = true;
    wanted.mode = common::mode_given(found);
    wanted.renew = false;
    if (found.has("ttl")) {
        wanted.ttl = duration_value(found, "ttl");
    } else if (file.ttl) {
        wanted.ttl = *file.ttl;
    }
    if (found.has("wait")) {
        wanted.wait =
            *found.value("wait") == "forever" ? dibs::forever : duration_value(found, "wait");
    }
    wanted.order = found.has("queue") ? order::queue : order::race;
    common::require_wait(found.has("queue"), wanted.wait);
    return wanted;
}

int take(store_in_use& store,
         const std::string& key,
         acquire_options wanted,
         milliseconds wait_left,
         int held_code,
         const arguments& found,
         interruption& interrupted) {
    const waiting_line::terms shown_wait{
        .how = waiting_line::fitting(found.has("verbose"), found.has("quiet")),
        .key = key,
        .also = {},
        .wait = wanted.wait};
    waiting_line waiting(store.through, shown_wait);
    const auto whole_wait = std::exchange(wanted.wait, wait_left);
    auto tried = detail::acquire_with_reason(store.through, key, wanted, interrupted.stop());
    waiting.end();
    if (const int signal = interrupted.finish(); signal != 0) {
        // What was granted all the same is given back by its destructor.
        return exit_status::signal_base + signal;
    }
    if (tried.error) {
        throw store_failure(tried.error, tried.message, store);
    }
    if (!tried.granted) {
        const bool may_wait = whole_wait > milliseconds::zero();
        if (!found.has("quiet") &&
            (may_wait || found.has("verbose") || ::isatty(STDERR_FILENO) == 1)) {
            say(quoted_key(key) + " " + who_stands_in_the_way(tried, key, store) +
                (may_wait && !tried.done ? "; waited " + show_duration(whole_wait) : ""));
        }
        return held_code;
    }
    const auto fence = tried.granted->last_fence();
    // The handing over starts the ttl anew: at least this much is left afterwards.
    const auto left = std::chrono::duration_cast<milliseconds>(tried.granted->remaining());
    const auto made = detail::make_handle(*tried.granted);
    if (made.error) {
        throw store_failure(
            made.error, made.message + "; the lease is given back, or ends by its ttl", store);
    }
    const auto& handle = made.text;
    if (found.has("verbose")) {
        say("holding " + quoted_key(key) + " for " + show_duration(wanted.ttl) + ", fence " +
            std::to_string(fence));
    }
    const auto shown = found.has("json") ? object_json({{"handle", handle},
                                                        {"key", key},
                                                        {"fence", fence},
                                                        {"expires_in_ms", left.count()}})
                                         : handle;
    try {
        deliver(shown + "\n");
    } catch (const failure& fault) {
        const auto undone = detail::release_handle(store.through, handle);
        throw failure(
            fault.status(),
            quoted_key(key) + ": " + fault.what() +
                (undone.error ? "; the lease ends by its ttl" : "; the lease was given back"));
    }
    return exit_status::ok;
}

}  // namespace

const command_syntax& acquire_syntax() {
    return syntax;
}

int acquire_command(const global_options& global, words given) {
    const auto found = parse_arguments(syntax, given);
    if (helped(syntax, found)) {
        return exit_status::ok;
    }
    const auto key = key_given(syntax, found);
    // Before the store is opened: what is wrong with the command line needs no store.
    const auto file = find_settings(real_surroundings());
    const auto wanted = terms_given(found, file);
    const int held_code = found.has("held-code") ? held_code_value(*found.value("held-code"))
                                                 : file.held_code.value_or(exit_status::held);
    // Before the first thread, and so before the client.
    signal_desk desk;
    interruption interrupted(desk, [](int signal) { ::_exit(exit_status::signal_base + signal); });
    const auto begun_at = boot_now();
    auto opened = use_awaited_store(global,
                                    found,
                                    described_caller(),
                                    {key, wanted.wait, found.has("quiet")},
                                    interrupted.stop());
    if (!opened) {
        return exit_status::signal_base + interrupted.finish();
    }
    auto& store = *opened;
    if (store.through.store().name == "memory") {
        throw configuration_error(
            "store memory: ends with this process, and a handle to it is worthless; name a store "
            "with --store or DIBS_STORE");
    }
    check_ttl(store, found, wanted.ttl);
    const auto spent = std::chrono::duration_cast<milliseconds>(boot_now() - begun_at);
    return take(store, key, wanted, left_of(wanted.wait, spent), held_code, found, interrupted);
}

}  // namespace dibs::cli
