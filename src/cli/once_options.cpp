// SPDX-License-Identifier: Apache-2.0
#include "cli/once_options.hpp"

#include "cli/commands.hpp"
#include "cli/common_options.hpp"
#include "cli/duration.hpp"
#include "cli/failure.hpp"
#include "cli/redact.hpp"
#include "core/key.hpp"
#include "recipes/slot_record.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <string>
#include <string_view>

namespace dibs::cli {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds usual_keep = std::chrono::hours{7 * 24};
constexpr milliseconds shortest_keep = std::chrono::hours{1};
constexpr milliseconds longest_backoff = std::chrono::hours{1};

constexpr std::array once_table{
    option{"every",
           0,
           "PERIOD",
           "one run per day, week, month, hour, 15m, 6h … of the zone;\nthe slot is the one that "
           "this moment lies in"},
    option{"slot", 0, "TEXT", "one run per TEXT, for planners that name their slots"},
    option{"tz", 0, "ZONE", "zone of --every, such as Europe/Berlin (default: UTC)"},
    option{"skew",
           0,
           "DURATION",
           "a timer that fires so much early means the next slot\n(default 2s, less for short "
           "slots)"},
    option{"wait",
           'w',
           "DURATION",
           "wait so long for the slot to be done, and run it when\nwhoever is at it crashes or "
           "fails (default: do not wait)"},
    option{"retries",
           0,
           "N",
           "after a failure any host may try again, N times in all\n(default 0: a failure is "
           "final; a crash is not)"},
    option{"backoff", 0, "DURATION", "time before the first retry; doubles, up to 1h (default 1m)"},
    option{"at-most-once", 0, "", "never run a slot that was started, also after a crash"},
    option{"keep",
           0,
           "DURATION",
           "how long the outcome is remembered\n(default: two slots, at least 7d; at least 1h)"},
    option{"ttl", 0, "DURATION", "how long a crash holds the slot (default 30s)"},
    common::grace,
    common::max_runtime,
    option{"held-code", 'E', "N", "exit with N when the slot is not done and did not run here"},
    option{"dry-run", 0, "", "tell which slot it is now, and whether it would run"},
    option{"condition",
           0,
           "",
           "for ExecCondition= of systemd: 0 it would run, 1 it would\nnot, 255 trouble"},
    common::status_file,
    common::status_fd,
    common::store,
    option{"verbose", 'v', "", "tell what happens, also that there is nothing to do"},
    common::quiet,
    common::help,
};

constexpr std::string_view notes =
    "exit status: the command's own when it ran here; 0 when the slot is done or, without --wait, "
    "running\n"
    "elsewhere; the recorded status (1 if there is none) when it failed for good elsewhere; 75 "
    "when the\n"
    "wait is over, a retry is still to come, an operator has put the slot on hold, or it lies so "
    "far back\n"
    "that it may have been forgotten; else as for dibs run.\n"
    "\n"
    "TERM, INT and HUP go to the command. A run that they end (not with 0) is interrupted: others "
    "may run the\n"
    "slot at once, and no retry is used up; with --at-most-once it is lost.\n"
    "\n"
    "The command finds DIBS_JOB, DIBS_SLOT, DIBS_ATTEMPT and DIBS_IDEMPOTENCY_KEY (JOB/SLOT) in "
    "its\n"
    "environment, beside what dibs run gives. A crash between its effect and the record of it "
    "runs it\n"
    "again: give that key to whatever it calls, or use --at-most-once and lose the slot instead.";

constexpr std::string_view examples =
    "  0 3 * * *  /usr/local/bin/dibs once nightly-report --every day --tz Europe/Berlin -- "
    "/usr/local/bin/report\n"
    "  dibs once billing --slot 2026-11 --retries 3 --wait 1h -- ./bill 2026-11\n"
    "  dibs once nightly-report --every day --dry-run";

unsigned count_value(const arguments& found, std::string_view name) {
    const auto& text = *found.value(name);
    unsigned number = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
    if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size() || number > 1000) {
        throw usage_error("--" + std::string(name) + " " + as_given(text) +
                          ": must be a number from 0 to 1000");
    }
    return number;
}

core::wall_instant wall_now() {
    return core::wall_instant{std::chrono::duration_cast<core::microseconds>(
        std::chrono::system_clock::now().time_since_epoch())};
}

/// Fills in the slot; returns how long it and the tolerance for early timers last at most.
milliseconds settle_slot(const arguments& found, once_options& checked) {
    if (!found.has("every") && !found.has("slot")) {
        throw usage_error("--every PERIOD or --slot TEXT is missing");
    }
    if (found.has("slot")) {
        for (const auto* name : {"tz", "skew"}) {
            if (found.has(name)) {
                throw usage_error("--" + std::string(name) + " goes with --every alone");
            }
        }
        checked.terms.slot = *found.value("slot");
        if (const auto fault = recipes::fault_of_slot(checked.terms.slot); !fault.empty()) {
            throw usage_error("--slot " + fault);
        }
        return milliseconds::zero();
    }
    const std::string zone = found.has("tz") ? *found.value("tz") : "UTC";
    const auto& every = *found.value("every");
    std::string fault;
    if (!recipes::schedule::make(every, "UTC", fault)) {
        throw usage_error("--every " + as_given(every) + " " + fault);
    }
    const auto plan = recipes::schedule::make(every, zone, fault);
    if (!plan) {
        throw usage_error("--tz " + as_given(zone) + " " + fault);
    }
    auto early = plan->usual_early();
    if (found.has("skew")) {
        early = duration_option(found, "skew");
        if (early > plan->longest() / 2) {
            throw usage_error("--skew " + as_given(*found.value("skew")) +
                              ": must be at most half a slot (" +
                              show_duration(plan->longest() / 2) + ")");
        }
    }
    checked.planned = planned_slot{*plan, plan->at(wall_now(), early)};
    const auto& bounds = checked.planned->bounds;
    checked.terms.slot = bounds.name;
    checked.terms.begin_ms =
        std::chrono::floor<milliseconds>(bounds.begin.time_since_epoch()).count();
    return plan->longest() + std::chrono::ceil<milliseconds>(early);
}

/// How long the outcome is kept. Whoever asks for a slot whose outcome is forgotten runs it again.
milliseconds keep_of(const arguments& found,
                     const once_options& checked,
                     milliseconds slot_length) {
    const auto& terms = checked.terms;
    if (!found.has("keep")) {
        const auto retrying =
            terms.retries * (std::max(terms.backoff, longest_backoff) + checked.run.ttl);
        return std::max({2 * slot_length, usual_keep, slot_length + retrying});
    }
    if (!checked.planned && terms.at_most_once) {
        throw usage_error(
            "--keep does not go with --slot and --at-most-once: such a slot is remembered for "
            "ever, since it can be asked for at any time");
    }
    const auto keep = duration_option(found, "keep");
    if (keep < slot_length) {
        throw usage_error("--keep " + as_given(*found.value("keep")) +
                          ": must be longer than a slot with --skew (" +
                          show_duration(slot_length) + "), or a late host would run it again");
    }
    if (keep < shortest_keep) {
        throw usage_error("--keep " + as_given(*found.value("keep")) + ": must be at least " +
                          show_duration(shortest_keep) +
                          ", or a host that is late, or starts its job again, would run the slot "
                          "a second time");
    }
    return keep;
}

}  // namespace

once_options check_once_options(const arguments& found, const file_settings& file) {
    once_options checked;
    checked.dry_run = found.has("dry-run");
    checked.condition = found.has("condition");
    if (found.operands.empty()) {
        throw usage_error("JOB is missing; see dibs once --help");
    }
    const bool looks_only = checked.dry_run || checked.condition;
    if (found.command.empty() && !looks_only) {
        throw usage_error("COMMAND is missing; see dibs once --help");
    }
    auto& terms = checked.terms;
    terms.job = found.operands.front();
    if (const auto fault = core::fault_of_key(terms.job); !fault.empty()) {
        throw usage_error("JOB: " + fault);
    }
    const auto slot_length = settle_slot(found, checked);
    auto for_run = found;
    if (looks_only && for_run.command.empty()) {
        for_run.command = {"true"};
    }
    checked.run = check_run_options(for_run, file);
    checked.run.key = recipes::key_of_slot(terms.job, terms.slot);
    if (const auto fault = core::fault_of_key(checked.run.key); !fault.empty()) {
        throw usage_error("JOB and slot together: " + fault);
    }
    if (found.has("held-code")) {
        checked.held_code = checked.run.held_code;
    }
    terms.at_most_once = found.has("at-most-once");
    if (terms.at_most_once && (found.has("retries") || found.has("backoff"))) {
        throw usage_error("--at-most-once and --retries contradict each other");
    }
    terms.retries = found.has("retries") ? count_value(found, "retries") : 0;
    terms.backoff = found.has("backoff") ? duration_option(found, "backoff")
                                         : milliseconds{std::chrono::minutes{1}};

    terms.keep = keep_of(found, checked, slot_length);
    terms.command = redact_command(checked.run.command);
    terms.acquire.ttl = checked.run.ttl;
    terms.acquire.renew_every = checked.run.renew_every;
    terms.acquire.wait = checked.run.wait;
    return checked;
}

const command_syntax& once_syntax() {
    static const command_syntax syntax{
        .name = "once",
        .usage = "dibs once [OPTIONS] JOB (--every PERIOD | --slot TEXT) [--] COMMAND [ARGUMENTS]",
        .summary =
            "Runs COMMAND once per slot of JOB, on one of all the hosts that call it; its outcome "
            "is kept.",
        .options = once_table,
        .operands_max = 1,
        .command_follows = true,
        .notes = notes,
        .examples = examples,
    };
    return syntax;
}

}  // namespace dibs::cli
