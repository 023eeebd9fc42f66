// SPDX-License-Identifier: Apache-2.0
#include "cli/once/once_options.hpp"

#include "cli/commands.hpp"
#include "cli/options/common_options.hpp"
#include "cli/options/duration.hpp"
#include "cli/output/failure.hpp"
#include "cli/output/redact.hpp"
#include "client/recipes/slot_plan.hpp"
#include "core/key.hpp"
#include "recipes/once/slot_record.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <string>
#include <string_view>

namespace dibs::cli {

namespace {

using std::chrono::milliseconds;

constexpr std::array once_table{
    option{"every",
           0,
           "PERIOD",
           "one run per day, week, month, hour, 15m, 6h … of the zone;\nthe slot is the one that "
           "this moment lies in"},
    option{"cron",
           0,
           "EXPRESSION",
           "one run per time of a cron expression, such as \"0 3 * * 1-5\" or\n@daily; the slot is "
           "the one since the last such time"},
    option{"slot", 0, "TEXT", "one run per TEXT, for planners that name their slots"},
    option{"tz", 0, "ZONE", "zone of --every and --cron, such as Europe/Berlin (default:\nUTC)"},
    option{"skew",
           0,
           "DURATION",
           "a timer that fires so much early means the next slot\n(default 2s, less for short "
           "slots)"},
    option{"wait",
           'w',
           "DURATION",
           "wait so long (or `forever`) for the slot to be done, and\nrun it when whoever is at "
           "it crashes or fails (default: do\nnot wait)"},
    option{"retries",
           0,
           "N",
           "after a failure any host may try again, N times in all\n(default 0: a failure is "
           "final; a crash is not)"},
    option{"backoff", 0, "DURATION", "time before the first retry; doubles, up to 1h (default 1m)"},
    option{"at-most-once", 0, "", "never run a slot that was started, also after a crash"},
    option{"again",
           0,
           "",
           "run the slot whatever has become of it: done, failed for good,\nstarted at most once; "
           "once per call, so not for timers"},
    option{"keep",
           0,
           "DURATION",
           "how long the outcome is remembered\n(default: two slots, at least 7d; at least 1h)"},
    option{"missed",
           0,
           "WHICH",
           "of times that nobody fired for: none (nor that of now, when it\nis --late), last "
           "(default), or all, oldest first"},
    option{"missed-max", 0, "N", "with --missed all: the newest N (default 100)"},
    option{
        "late",
        0,
        "DURATION",
        "with --missed none: how late a slot may still be begun\n(default with --cron: 10m, half a "
        "short slot)"},
    option{"overlap",
           0,
           "HOW",
           "forbid: not while another slot of JOB is being run; or allow\n(default: allow; forbid "
           "with --missed all)"},
    option{"keep-output",
           0,
           "SIZE",
           "keep the end of what the command writes, such as 4k, for\ndibs runs --output; at most "
           "16k. Mind secrets"},
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
    "With --missed all it is the first status of a slot that is not 0. A slot that may not begin "
    "yet "
    "(--overlap\n"
    "forbid) counts as one that is running elsewhere: 0, or with --wait 75 when the wait is over.\n"
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
    "  dibs once weekday-mail --cron \"30 7 * * mon-fri\" --tz Europe/Berlin --retries 2 -- "
    "./mail\n"
    "  dibs once billing --slot 2026-11 --again -- ./bill 2026-11\n"
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

constexpr std::size_t output_most = 16 * 1024;

/// `2000` or `4k`.
std::size_t size_value(const arguments& found, std::string_view name) {
    const auto& text = *found.value(name);
    std::size_t number = 0;
    const auto* const end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, number);
    const std::string_view rest(parsed.ptr, end);
    const std::size_t unit = rest == "k" || rest == "K" ? 1024 : 1;
    if (parsed.ec != std::errc{} || (!rest.empty() && unit == 1) || number == 0 ||
        number > output_most / unit) {
        throw usage_error("--" + std::string(name) + " " + as_given(text) +
                          ": must be a number of bytes from 1 to 16k");
    }
    return number * unit;
}

void settle_missed(const arguments& found, once_options& checked) {
    const auto chosen = found.has("missed") ? *found.value("missed") : std::string("last");
    for (const auto* name : {"missed", "missed-max", "late"}) {
        if (found.has(name) && !checked.planned) {
            throw usage_error("--" + std::string(name) + " goes with --every and --cron alone");
        }
    }
    auto& due = checked.due;
    if (chosen == "none") {
        due.policy = recipes::missed_slots::none;
    } else if (chosen == "all") {
        due.policy = recipes::missed_slots::all;
    } else if (chosen != "last") {
        throw usage_error("--missed " + as_given(chosen) + ": must be none, last or all");
    }
    if (found.has("late") && due.policy != recipes::missed_slots::none) {
        throw usage_error("--late goes with --missed none alone");
    }
    if (found.has("missed-max")) {
        if (due.policy != recipes::missed_slots::all) {
            throw usage_error("--missed-max goes with --missed all alone");
        }
        due.most = count_value(found, "missed-max");
        if (due.most == 0) {
            throw usage_error("--missed-max 0: must be at least 1; see --missed none");
        }
    }
    if (found.has("late")) {
        due.late = duration_option(found, "late");
    } else if (due.policy == recipes::missed_slots::none) {
        if (found.has("every")) {
            throw usage_error(
                "--missed none needs --late with --every: a period does not tell when it is fired");
        }
        due.late = detail::usual_late(checked.planned->plan);
    }
    checked.terms.again = found.has("again");
    if (checked.terms.again && due.policy != recipes::missed_slots::last) {
        throw usage_error("--again goes with one slot, and --missed with several");
    }
    checked.terms.in_turn = due.policy == recipes::missed_slots::all;
    if (found.has("overlap")) {
        const auto& overlap = *found.value("overlap");
        if (overlap != "forbid" && overlap != "allow") {
            throw usage_error("--overlap " + as_given(overlap) + ": must be forbid or allow");
        }
        checked.terms.in_turn = overlap == "forbid";
    }
}

void name_slot(detail::slot_terms& terms, const recipes::slot& which) {
    terms.slot = which.name;
    terms.begin_ms = std::chrono::floor<milliseconds>(which.begin.time_since_epoch()).count();
}

/// Fills in the slot; returns how long it and the tolerance for early timers last at most.
milliseconds settle_slot(const arguments& found, once_options& checked) {
    if (!found.has("every") && !found.has("cron") && !found.has("slot")) {
        throw usage_error("--every PERIOD, --cron EXPRESSION or --slot TEXT is missing");
    }
    if (found.has("slot")) {
        for (const auto* name : {"tz", "skew"}) {
            if (found.has(name)) {
                throw usage_error("--" + std::string(name) + " goes with --every and --cron alone");
            }
        }
        checked.terms.slot = *found.value("slot");
        if (const auto fault = recipes::fault_of_slot(checked.terms.slot); !fault.empty()) {
            throw usage_error("--slot " + fault);
        }
        return milliseconds::zero();
    }
    const std::string zone = found.has("tz") ? *found.value("tz") : "UTC";
    const std::string kind = found.has("cron") ? "cron" : "every";
    const auto& planned = *found.value(kind);
    const auto make = found.has("cron") ? &recipes::schedule::make_cron : &recipes::schedule::make;
    std::string fault;
    if (!make(planned, "UTC", fault)) {
        throw usage_error("--" + kind + " " + as_given(planned) + " " + fault);
    }
    const auto plan = make(planned, zone, fault);
    if (!plan) {
        throw usage_error("--tz " + as_given(zone) + " " + fault);
    }
    auto early = plan->usual_early();
    if (found.has("skew")) {
        early = duration_option(found, "skew");
        if (early > plan->most_early()) {
            throw usage_error(
                "--skew " + as_given(*found.value("skew")) + ": must be at most half a slot (" +
                show_duration(std::chrono::floor<milliseconds>(plan->most_early())) + ")");
        }
    }
    checked.planned = planned_slot{*plan, plan->at(detail::wall_now(), early)};
    const auto& bounds = checked.planned->bounds;
    name_slot(checked.terms, bounds);
    return plan->longest() + std::chrono::ceil<milliseconds>(early);
}

/// How long the outcome is kept. Whoever asks for a slot whose outcome is forgotten runs it again.
milliseconds keep_of(const arguments& found,
                     const once_options& checked,
                     milliseconds slot_length) {
    const auto& terms = checked.terms;
    if (!found.has("keep")) {
        return detail::usual_keep(slot_length, terms.retries, terms.backoff, checked.run.ttl);
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
    if (keep < detail::shortest_keep) {
        throw usage_error("--keep " + as_given(*found.value("keep")) + ": must be at least " +
                          show_duration(detail::shortest_keep) +
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
    settle_missed(found, checked);
    if (found.has("keep-output")) {
        checked.keep_output = size_value(found, "keep-output");
    }
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

once_options for_slot(once_options options, const recipes::slot& which) {
    options.planned->bounds = which;
    name_slot(options.terms, which);
    options.run.key = recipes::key_of_slot(options.terms.job, which.name);
    return options;
}

const command_syntax& once_syntax() {
    static const command_syntax syntax{
        .name = "once",
        .usage =
            "dibs once [OPTIONS] JOB (--every PERIOD | --cron EXPRESSION | --slot TEXT) [--] "
            "COMMAND [ARGUMENTS]",
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
