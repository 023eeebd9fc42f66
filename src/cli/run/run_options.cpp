// SPDX-License-Identifier: Apache-2.0
#include "cli/run/run_options.hpp"

#include "cli/commands.hpp"
#include "cli/options/common_options.hpp"
#include "cli/options/duration.hpp"
#include "cli/output/failure.hpp"
#include "cli/supervisor/stopper.hpp"
#include "core/deadline.hpp"
#include "core/key.hpp"

#include <dibs/options.hpp>

#include <algorithm>
#include <array>
#include <stdexcept>

namespace dibs::cli {

namespace {

using std::chrono::milliseconds;

constexpr std::array options{
    option{"wait",
           'w',
           "DURATION",
           "wait this long for the key, and for its server;\n`forever` is allowed (default: one "
           "try; dibs elect: "
           "forever)"},
    common::queue_option,
    common::shared,
    common::permits,
    common::take,
    option{"also", 0, "KEY", "take this key, too: all of them or none (may be repeated)"},
    option{"ttl",
           0,
           "DURATION",
           "how long the lease lasts when this host dies, 1s to 24h\n(default 30s); it is renewed "
           "while the command runs"},
    common::grace,
    option{"max-hold", 0, "DURATION", "stop the command (status 79) after this time"},
    common::max_runtime,
    option{"no-renew", 0, "", "let the lease end after one ttl; the command is stopped before"},
    option{"held-code", 'E', "N", "exit with N instead of 75 when somebody else holds the key"},
    common::status_file,
    common::status_fd,
    common::store,
    option{"key", 0, "KEY", "the key, when it begins with a dash"},
    option{"verbose", 'v', "", "tell what happens, also that the key is held"},
    common::quiet,
    common::help,
};

constexpr bool is_for_several(const option& one) {
    return one.name == "shared" || one.name == "permits" || one.name == "take" ||
           one.name == "also";
}

constexpr option ended_code{
    "ended-code",
    0,
    "N",
    "exit with N instead of 0 when the command ended well by itself,\nso that a supervisor that "
    "restarts failures starts this again"};

/// A leader is one, and of one thing.
constexpr auto elect_options = [] {
    std::array<option, options.size() - 4 + 1> kept{};
    auto* const end =
        std::copy_if(options.begin(), options.end(), kept.begin(), [](const option& one) {
            return !is_for_several(one);
        });
    // Before the last one, the help.
    *end = *(end - 1);
    *(end - 1) = ended_code;
    return kept;
}();

constexpr std::string_view notes =
    "exit status: the command's own, 128+N when signal N killed it; 64 usage; 69 store not "
    "reachable;\n"
    "71 no process, descriptor or memory to be had; 75 held, on hold, or wait over; 78 "
    "configuration;\n"
    "79 lease lost and the command stopped; 124 --max-runtime; 126 cannot be executed; 127 not "
    "found.\n"
    "\n"
    "The command runs without a shell, in a process group of its own, and finds DIBS_KEY, "
    "DIBS_FENCE,\n"
    "DIBS_TTL_MS, DIBS_DEADLINE_BOOTTIME_NS and DIBS_RUN_ID in its environment. When the lease "
    "cannot be\n"
    "kept, its group is stopped before somebody else can get the key. Processes that it leaves "
    "behind when\n"
    "it ends by itself go on, without the lease.\n"
    "\n"
    "With --shared or --permits DIBS_FENCE tells the command from others, but does not order them: "
    "several run\n"
    "at once. With --also the first further key and its fence are in DIBS_KEY_2 and DIBS_FENCE_2, "
    "and so on;\n"
    "the loss of one of them stops the command.";

constexpr std::string_view examples =
    "  dibs run nightly-report -- ./report.sh\n"
    "  dibs run migrate --wait 5m --ttl 1m -- ./migrate up\n"
    "  dibs run --permits 3 --wait 1h transcode -- ./transcode film.mkv\n"
    "  dibs run --shared --wait 10m catalogue -- ./export-catalogue\n"
    "  dibs run account:17 --also account:42 --wait 30s -- ./transfer 17 42\n"
    "  dibs run --max-runtime 1h backup sh -c 'pg_dump shop > \"/backup/shop-$DIBS_FENCE.sql\"'";

milliseconds positive_option(const arguments& given, std::string_view name) {
    const auto length = duration_option(given, name);
    if (length <= milliseconds::zero()) {
        throw usage_error("--" + std::string(name) + " " + as_given(*given.value(name)) +
                          ": must be longer than zero");
    }
    return length;
}

int code_of(const std::string& text, std::string_view name) {
    const bool digits = !text.empty() && text.size() <= 3 &&
                        std::all_of(text.begin(), text.end(), [](char character) {
                            return character >= '0' && character <= '9';
                        });
    const int code = digits ? std::stoi(text) : -1;
    if (code < 0 || code > 255) {
        throw usage_error("--" + std::string(name) + " " + as_given(text) +
                          ": must be a number from 0 to 255");
    }
    return code;
}

}  // namespace

const command_syntax& run_syntax() {
    static const command_syntax syntax{
        .name = "run",
        .usage = "dibs run [OPTIONS] KEY [OPTIONS] [--] COMMAND [ARGUMENTS]",
        .summary = "Runs COMMAND while holding KEY; does nothing when somebody else holds it.",
        .options = options,
        .operands_max = 1,
        .command_follows = true,
        .first_operand = "key",
        .notes = notes,
        .examples = examples,
    };
    return syntax;
}

const command_syntax& elect_syntax() {
    static constexpr std::string_view leader_notes =
        "exit status: the command's own; 79 when the leadership was lost and the command stopped, "
        "so that a\n"
        "supervisor starts this again; with --ended-code N also when the command ended with 0 and "
        "nobody had told\n"
        "it to (TERM, INT, HUP); else as for dibs run.\n"
        "\n"
        "The command finds the number of its term in DIBS_TERM (the same as DIBS_FENCE): it grows "
        "with every\n"
        "change of leader. Hand it to whatever must not listen to a leader of yesterday.";
    static const command_syntax syntax{
        .name = "elect",
        .usage = "dibs elect [OPTIONS] KEY [OPTIONS] [--] COMMAND [ARGUMENTS]",
        .summary = "Stands by until this process leads, and runs COMMAND for as long as it does.",
        .options = elect_options,
        .operands_max = 1,
        .command_follows = true,
        .first_operand = "key",
        .notes = leader_notes,
        .examples =
            "  dibs elect controller -- ./controller\n"
            "  dibs elect controller --ttl 10s -- sh -c './controller --term \"$DIBS_TERM\"'\n"
            "  dibs elect controller --ended-code 1 -- ./controller      # with "
            "Restart=on-failure\n"
            "  dibs watch controller                                     # who leads, and each "
            "change",
    };
    return syntax;
}

milliseconds duration_option(const arguments& given, std::string_view name) {
    try {
        return parse_duration(*given.value(name));
    } catch (const std::invalid_argument& fault) {
        throw usage_error("--" + std::string(name) + " " + as_given(*given.value(name)) + ": " +
                          fault.what());
    }
}

run_options check_run_options(const arguments& given, const file_settings& file) {
    run_options checked;
    if (given.has("key")) {
        checked.key = *given.value("key");
        if (!given.operands.empty()) {
            throw usage_error("the key was given twice: as --key and as " +
                              as_given(given.operands.front()));
        }
    } else if (given.operands.empty()) {
        throw usage_error("KEY is missing; see dibs run --help");
    } else {
        checked.key = given.operands.front();
    }
    if (is_handle(checked.key)) {
        throw usage_error("KEY: this is a handle; dibs renew and dibs release take one");
    }
    if (const auto fault = core::fault_of_key(checked.key); !fault.empty()) {
        throw usage_error("KEY: " + fault);
    }
    checked.also = given.all_values("also");
    for (const auto& also : checked.also) {
        if (is_handle(also)) {
            throw usage_error("--also: this is a handle; dibs renew and dibs release take one");
        }
        if (const auto fault = core::fault_of_key(also); !fault.empty()) {
            throw usage_error("--also " + as_given(also) + ": " + fault);
        }
    }
    checked.mode = common::mode_given(given);
    checked.command = given.command;
    if (checked.command.empty()) {
        throw usage_error("COMMAND is missing; see dibs run --help");
    }

    if (given.has("ttl")) {
        checked.ttl = duration_option(given, "ttl");
    } else if (file.ttl) {
        checked.ttl = *file.ttl;
    }
    if (checked.ttl < run_ttl_min || checked.ttl > run_ttl_max) {
        constexpr auto limits = "must be from 1s to 24h";
        if (given.has("ttl")) {
            throw usage_error("--ttl " + as_given(*given.value("ttl")) + ": " + limits);
        }
        throw configuration_error(file.path + ": ttl " + limits);
    }
    checked.grace = std::min<milliseconds>(std::chrono::seconds{5}, checked.ttl / 6);
    const auto grace_max = checked.ttl / 3;
    if (given.has("grace")) {
        checked.grace = duration_option(given, "grace");
        if (checked.grace > grace_max) {
            throw usage_error("--grace " + as_given(*given.value("grace")) +
                              ": must be at most a third of the ttl (" +
                              std::to_string(grace_max.count()) + "ms)");
        }
    } else if (file.grace) {
        // A file speaks for many commands, some with a short ttl.
        checked.grace = std::min(*file.grace, grace_max);
    }
    // Two renewals must have their chance before the command is told to stop.
    const auto runway =
        checked.ttl - checked.grace - stop_limits{}.margin - core::deadline_margin(checked.ttl);
    checked.renew_every = std::min<milliseconds>(
        checked.ttl / 3, std::chrono::duration_cast<milliseconds>(runway) / 2);

    if (given.has("wait")) {
        checked.wait =
            *given.value("wait") == "forever" ? dibs::forever : duration_option(given, "wait");
    }
    checked.queue = given.has("queue");
    if (given.has("max-hold")) {
        checked.max_hold = positive_option(given, "max-hold");
    }
    if (given.has("max-runtime")) {
        checked.max_runtime = positive_option(given, "max-runtime");
    }
    checked.renew = !given.has("no-renew");
    if (given.has("held-code")) {
        checked.held_code = code_of(*given.value("held-code"), "held-code");
    } else if (file.held_code) {
        checked.held_code = *file.held_code;
    }
    if (given.has("ended-code")) {
        checked.ended_code = code_of(*given.value("ended-code"), "ended-code");
    }
    checked.status_file = report_path(given);
    if (const auto* store = given.value("store")) {
        checked.store = *store;
    }
    checked.verbose = given.has("verbose");
    checked.quiet = given.has("quiet");
    return checked;
}

std::string report_path(const arguments& given) {
    const auto* path = given.value("status-file");
    const auto* descriptor = given.value("status-fd");
    if (path != nullptr && path->empty()) {
        throw usage_error("--status-file is empty");
    }
    if (descriptor == nullptr) {
        return path != nullptr ? *path : std::string{};
    }
    const bool digits = !descriptor->empty() && descriptor->size() <= 7 &&
                        descriptor->find_first_not_of("0123456789") == std::string::npos;
    if (!digits) {
        throw usage_error("--status-fd " + as_given(*descriptor) +
                          ": must be the number of an open descriptor");
    }
    return "/dev/fd/" + std::to_string(std::stoi(*descriptor));
}

}  // namespace dibs::cli
