// SPDX-License-Identifier: Apache-2.0
// dibs hold: maintenance; nobody may acquire.
#include "cli/options/command_support.hpp"
#include "cli/options/duration.hpp"
#include "cli/output/speech.hpp"
#include "client/host/this_process.hpp"

#include <array>
#include <chrono>
#include <string>

namespace dibs::cli {

namespace {

constexpr std::array options{
    option{"for", 0, "DURATION", "how long the hold lasts; it ends by itself"},
    option{"reason", 0, "TEXT", "why; told to whoever is refused, with your user and host"},
    option{"lift", 0, "", "end the hold now"},
    store_option,
    key_option,
    quiet_option,
    help_option,
};

const command_syntax syntax{
    .name = "hold",
    .usage = "dibs hold [OPTIONS] KEY (--for DURATION --reason TEXT | --lift)",
    .summary =
        "Puts KEY on hold: nobody may acquire it until the time is over or the hold is lifted. A "
        "lease that\n"
        "is held stays, and its holder can finish.",
    .options = options,
    .operands_max = 1,
    .first_operand = "key",
    .notes =
        "A second hold replaces the first. Holds survive restarts and reboots.\n"
        "A hold on the name of a job of dibs once holds back all its slots that have not begun. A\n"
        "slot alone is the key JOB@SLOT, which dibs once --dry-run tells.\n"
        "\n"
        "exit status: 0 done; 64 usage; 69 store not reachable; 78 configuration.",
    .examples =
        "  dibs hold nightly-report --for 2h --reason 'database migration, ask Ada'\n"
        "  dibs hold nightly-report --lift",
};

constexpr std::size_t reason_bytes_max = 500;

struct wish {
    std::chrono::milliseconds length{};  ///< zero: lift
    std::string reason;
};

wish checked(const arguments& found) {
    if (found.has("lift")) {
        return {};
    }
    if (!found.has("for") || !found.has("reason")) {
        throw usage_error(
            "--for and --reason are both needed (or --lift alone); see dibs hold --help");
    }
    wish wanted{duration_value(found, "for"), *found.value("reason")};
    if (wanted.length <= std::chrono::milliseconds::zero()) {
        throw usage_error("--for " + as_given(*found.value("for")) +
                          ": must be longer than zero; --lift ends a hold");
    }
    if (wanted.reason.find_first_not_of(" \t\r\n") == std::string::npos) {
        throw usage_error("--reason is empty; tell others why they are refused");
    }
    if (wanted.reason.size() > reason_bytes_max) {
        throw usage_error("--reason is longer than " + std::to_string(reason_bytes_max) + " bytes");
    }
    return wanted;
}

}  // namespace

const command_syntax& hold_syntax() {
    return syntax;
}

int hold_command(const global_options& global, words given) {
    const auto found = parse_arguments(syntax, given);
    if (helped(syntax, found)) {
        return exit_status::ok;
    }
    const auto key = key_given(syntax, found);
    const auto wanted = checked(found);
    const bool lifts = wanted.length == std::chrono::milliseconds::zero();
    auto store =
        use_store(global, found, "dibs hold", lifts ? store_use::existing : store_use::make);
    try {
        if (lifts) {
            store.through.lift_hold(key);
            return exit_status::ok;
        }
        const auto self = detail::this_process("dibs hold");
        store.through.hold(
            key, wanted.length, wanted.reason + " (by " + self.user + "@" + self.host + ")");
    } catch (const std::system_error& error) {
        throw store_failure(error.code(), error.what(), store);
    }
    if (!found.has("quiet")) {
        if (const auto record = look_at(store, key); !record.holders.empty()) {
            say(quoted_key(key) + " is on hold from now on, and still held by " +
                describe_holder(record.holders.front()));
        }
    }
    return exit_status::ok;
}

}  // namespace dibs::cli
