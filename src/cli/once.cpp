// SPDX-License-Identifier: Apache-2.0
// dibs once: a job that runs once per planned time, on whichever host comes first.
#include "cli/commands.hpp"
#include "cli/duration.hpp"
#include "cli/failure.hpp"
#include "cli/held_child.hpp"
#include "cli/json.hpp"
#include "cli/option_table.hpp"
#include "cli/redact.hpp"
#include "cli/run_options.hpp"
#include "cli/speech.hpp"
#include "cli/status_report.hpp"
#include "cli/store_access.hpp"
#include "cli/supervisor/boot_time.hpp"
#include "cli/supervisor/interruption.hpp"
#include "client/slot_run.hpp"
#include "core/key.hpp"
#include "recipes/schedule.hpp"

#include <dibs/dibs.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace dibs::cli {

namespace {

using detail::slot_verdict;
using std::chrono::milliseconds;

/// A note about a skip is not worth more.
constexpr auto note_patience = milliseconds{500};
constexpr milliseconds keep_at_least = std::chrono::hours{7 * 24};
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
           "how long the outcome is remembered\n(default: two slots, at least 7d)"},
    option{"ttl", 0, "DURATION", "how long a crash holds the slot (default 30s)"},
    option{"grace", 0, "DURATION", "time between TERM and KILL, as for dibs run"},
    option{"max-runtime", 0, "DURATION", "stop the command (status 124) after this time"},
    option{"held-code", 'E', "N", "exit with N when the slot is not done and did not run here"},
    option{"dry-run", 0, "", "tell which slot it is now, and whether it would run"},
    option{"condition",
           0,
           "",
           "for ExecCondition= of systemd: 0 it would run, 1 it would\nnot, 255 trouble"},
    option{"status-file", 0, "FILE", "write what happened there, as JSON"},
    option{"status-fd", 0, "N", "the same, to a descriptor that the caller has opened"},
    option{"store", 0, "URL", "the store (default: $DIBS_STORE, dibs.toml, an SQLite file)"},
    option{"verbose", 'v', "", "tell what happens, also that there is nothing to do"},
    option{"quiet", 'q', "", "tell nothing but errors"},
    option{"help", 'h', "", "this text"},
};

constexpr std::string_view notes =
    "exit status: the command's own when it ran here; 0 when the slot is done or, without --wait, "
    "running\n"
    "elsewhere; the recorded status (1 if there is none) when it failed for good elsewhere; 75 "
    "when the\n"
    "wait is over, a retry is still to come, or an operator has put the slot on hold; else as for "
    "dibs run.\n"
    "\n"
    "The command finds DIBS_JOB, DIBS_SLOT, DIBS_ATTEMPT and DIBS_IDEMPOTENCY_KEY (JOB/SLOT) in "
    "its\n"
    "environment, beside what dibs run gives. A crash between its effect and the record of it "
    "runs it\n"
    "again: give that key to whatever it calls, or use --at-most-once and lose the slot instead.";

constexpr std::string_view examples =
    "  0 3 * * *  dibs once nightly-report --every day --tz Europe/Berlin -- ./report.sh\n"
    "  dibs once billing --slot 2026-11 --retries 3 --wait 1h -- ./bill 2026-11\n"
    "  dibs once nightly-report --every day --dry-run";

struct once_options {
    run_options run;  ///< its key is the job's slot
    detail::slot_terms terms;
    std::optional<recipes::slot> bounds;  ///< with --every
    std::optional<int> held_code;
    bool dry_run = false;
    bool condition = false;
};

milliseconds duration_value(const arguments& found, std::string_view name) {
    const auto& text = *found.value(name);
    try {
        return parse_duration(text);
    } catch (const std::invalid_argument& fault) {
        throw usage_error("--" + std::string(name) + " " + core::printable(text) + ": " +
                          fault.what());
    }
}

unsigned count_value(const arguments& found, std::string_view name) {
    const auto& text = *found.value(name);
    unsigned number = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
    if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size() || number > 1000) {
        throw usage_error("--" + std::string(name) + " " + core::printable(text) +
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
    if (found.has("every") == found.has("slot")) {
        throw usage_error(found.has("slot") ? "--every and --slot: only one of them"
                                            : "--every PERIOD or --slot TEXT is missing");
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
        throw usage_error("--every " + core::printable(every) + " " + fault);
    }
    const auto plan = recipes::schedule::make(every, zone, fault);
    if (!plan) {
        throw usage_error("--tz " + core::printable(zone) + " " + fault);
    }
    auto early = plan->usual_early();
    if (found.has("skew")) {
        early = duration_value(found, "skew");
        if (early > plan->longest() / 2) {
            throw usage_error("--skew must be at most half a slot");
        }
    }
    checked.bounds = plan->at(wall_now(), early);
    checked.terms.slot = checked.bounds->name;
    return plan->longest() + std::chrono::ceil<milliseconds>(early);
}

once_options check_options(const arguments& found, const file_settings& file) {
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
    terms.backoff = found.has("backoff") ? duration_value(found, "backoff")
                                         : milliseconds{std::chrono::minutes{1}};

    const auto retrying =
        terms.retries * (std::max(terms.backoff, longest_backoff) + checked.run.ttl);
    const auto needed = slot_length + (terms.retries > 0 ? retrying : milliseconds::zero());
    terms.keep = std::max({2 * slot_length, keep_at_least, needed});
    if (found.has("keep")) {
        terms.keep = duration_value(found, "keep");
        if (terms.keep <= milliseconds::zero() || terms.keep < slot_length) {
            throw usage_error("--keep must be longer than a slot with --skew (" +
                              show_duration(slot_length) + "), or a late host would run it again");
        }
    }
    terms.command = redact_command(checked.run.command);
    terms.acquire.ttl = checked.run.ttl;
    terms.acquire.renew_every = checked.run.renew_every;
    terms.acquire.wait = checked.run.wait;
    return checked;
}

std::string instant_text(std::int64_t since_1970_ms) {
    return show_instant(std::chrono::system_clock::time_point{milliseconds{since_1970_ms}});
}

std::string who_ran(const recipes::slot_record& record) {
    return core::printable(record.host) + " (pid " + std::to_string(record.pid) + ", user " +
           core::printable(record.user) + ", attempt " + std::to_string(record.attempt) +
           ", started " + instant_text(record.started_ms) + ")";
}

/// The state of a slot as a sentence.
std::string describe_slot(const std::string& key,
                          slot_verdict verdict,
                          const std::optional<recipes::slot_record>& record) {
    auto text = quoted_key(key);
    switch (verdict) {
        case slot_verdict::done:
            return text + " is done" + (record ? ", by " + who_ran(*record) : "");
        case slot_verdict::failed:
            if (record && record->state == recipes::slot_state::started) {
                return text + " was started at most once and never ended, on " + who_ran(*record);
            }
            return text + " failed for good" +
                   (record ? " with status " + std::to_string(record->status.value_or(1)) + " on " +
                                 who_ran(*record)
                           : "");
        case slot_verdict::waiting:
            return text + " failed and may be tried again" +
                   (record ? " from " + instant_text(record->next_at_ms) + "; last on " +
                                 who_ran(*record)
                           : "");
        case slot_verdict::running:
            return text + " is being run" + (record ? " on " + who_ran(*record) : "");
        case slot_verdict::blocked:
            return text + " is on hold";
        case slot_verdict::granted:
        case slot_verdict::trouble:
            break;
    }
    return text;
}

class once_session {
  public:
    once_session(once_options options, store_choice store)
        : options_(std::move(options)), store_(std::move(store)) {
        report_.key = options_.run.key;
        report_.store = redact_url(store_.url);
        report_.started = std::chrono::system_clock::now();
    }

    int run() {
        int status = exit_status::our_bug;
        try {
            status = claim_and_run();
        } catch (const failure& fault) {
            status = fault.status();
            tell("invalid", fault.what());
            if (status == exit_status::unavailable) {
                report_.outcome = "unavailable";
            }
        } catch (const std::exception& fault) {
            tell("invalid", fault.what());
        }
        write_status(status);
        return status;
    }

  private:
    int claim_and_run() {
        signal_desk desk;
        // Before the first thread, and so before the client.
        guard guarded(options_.run.grace);
        interruption interrupted(desk, [this, &guarded](int signal) {
            guarded.page().over.store(true);
            report_.outcome = "signal";
            write_status(exit_status::signal_base + signal);
            ::_exit(exit_status::signal_base + signal);
        });
        const auto opened_at = boot_now();
        auto through = open_client(store_, options_.terms.command);
        const auto spent = std::chrono::duration_cast<milliseconds>(boot_now() - opened_at);
        options_.terms.acquire.timeout = std::max(store_patience - spent, milliseconds{100});
        auto found = detail::claim_slot(through, options_.terms, interrupted.stop());
        if (const int signal = interrupted.finish(); signal != 0) {
            report_.outcome = "signal";
            report_.message = std::string("ended by ") + signal_name(signal) + " while waiting";
            if (found.granted) {
                // Nothing was run: whoever comes next may.
                std::error_code ignored;
                (void)found.granted->release(ignored);
            }
            return exit_status::signal_base + signal;
        }
        return found.granted ? run_child(through, found, desk, guarded)
                             : not_granted(through, found);
    }

    int not_granted(client& through, const detail::slot_claim& found) {
        if (found.error) {
            throw failure(status_of(found.error),
                          quoted_key(options_.run.key) + ": " +
                              (found.message.empty() ? found.error.message() : found.message) +
                              " (store " + report_.store + "); the command was not started");
        }
        const bool waits = options_.run.wait > milliseconds::zero();
        auto text = describe_slot(options_.run.key, found.verdict, found.found);
        if (!found.holders.empty()) {
            report_.holder = found.holders.front();
            text += "; held by " + describe_holder(found.holders.front());
        }
        if (found.verdict == slot_verdict::blocked) {
            text += ": " + core::printable(found.blocked_reason);
        }
        int status = options_.held_code.value_or(exit_status::held);
        switch (found.verdict) {
            case slot_verdict::done:
                report_.outcome = "done";
                status = exit_status::ok;
                break;
            case slot_verdict::failed:
                report_.outcome = "failed";
                status = found.found ? found.found->status.value_or(exit_status::trouble)
                                     : exit_status::trouble;
                break;
            case slot_verdict::running:
                report_.outcome = waits ? "wait_over" : "running";
                if (!waits) {
                    status = options_.held_code.value_or(exit_status::ok);
                }
                break;
            case slot_verdict::waiting:
                report_.outcome = waits ? "wait_over" : "waiting";
                break;
            case slot_verdict::blocked:
                report_.outcome = "blocked";
                break;
            case slot_verdict::granted:
            case slot_verdict::trouble:
                break;
        }
        if (report_.outcome == "wait_over") {
            text += "; waited " + show_duration(options_.run.wait);
        }
        report_.message = text;
        // Several hosts fire so that one of them runs: that the others do not is no news.
        const bool news = waits && status != exit_status::ok;
        const bool loud = options_.run.verbose || news || ::isatty(STDERR_FILENO) == 1;
        if (loud && !options_.run.quiet) {
            say(text);
        }
        detail::note_skip(through, options_.terms, note_patience);
        return status;
    }

    int run_child(client& through, detail::slot_claim& found, signal_desk& desk, guard& guarded) {
        auto& held = *found.granted;
        const auto& slot = options_.terms;
        report_.fence = held.last_fence();
        child_terms terms;
        terms.key = options_.run.key;
        terms.command = options_.run.command;
        terms.ttl = options_.run.ttl;
        terms.grace = options_.run.grace;
        terms.max_runtime = options_.run.max_runtime;
        terms.verbose = options_.run.verbose;
        terms.store = store_;
        terms.variables = {"DIBS_JOB=" + slot.job,
                           "DIBS_SLOT=" + slot.slot,
                           "DIBS_ATTEMPT=" + std::to_string(found.mine.attempt),
                           "DIBS_IDEMPOTENCY_KEY=" + slot.job + "/" + slot.slot};
        const auto end = run_held_child(through, held, terms, desk, guarded);

        lease_end ended;
        ended.fence = report_.fence;
        ended.lost_reason = held.lost_reason();
        ended.given_back = true;
        const int status = judge(terms, end, ended).status;
        ended.given_back = detail::finish_slot(through,
                                               held,
                                               slot,
                                               found.mine,
                                               status == exit_status::ok,
                                               status,
                                               ended.release_error) == release_outcome::released;
        auto verdict = judge(terms, end, ended);
        if (ended.release_error && !verdict.lost()) {
            verdict.remark = "the outcome of " + quoted_key(terms.key) +
                             " could not be recorded (" + ended.release_error.message() +
                             "); another host may run it again";
        }
        report_.outcome = verdict.outcome;
        for (const auto& text : {verdict.remark, verdict.message}) {
            if (!text.empty()) {
                say(text);
            }
        }
        report_.message = verdict.message;
        if (verdict.outcome == "child" && end.killed_by != 0) {
            report_.message = std::string("killed by ") + signal_name(end.killed_by);
        }
        return verdict.status;
    }

    void tell(std::string_view outcome, const std::string& text) {
        report_.outcome = outcome;
        report_.message = text;
        say(text);
    }

    void write_status(int status) noexcept {
        if (options_.run.status_file.empty()) {
            return;
        }
        try {
            report_.status = status;
            report_.ended = std::chrono::system_clock::now();
            if (!write_report(options_.run.status_file, report_)) {
                say("cannot write " + options_.run.status_file);
            }
        } catch (const std::exception& fault) {
            say(fault.what());
        }
    }

    once_options options_;
    store_choice store_;
    status_report report_;
};

// --- looking alone -------------------------------------------------------------------------------

struct outlook {
    bool would_run = false;
    std::string why;
};

outlook look_ahead(const once_options& options, const dibs::record& record) {
    const auto& key = options.run.key;
    std::optional<recipes::slot_record> kept;
    if (record.kept) {
        bool newer = false;
        kept = recipes::slot_record_of(record.kept->value, newer);
        if (!kept) {
            throw configuration_error(quoted_key(key) +
                                      ": what is kept there is no record of a slot" +
                                      (newer ? " that this release can read" : ""));
        }
    }
    if (record.blocked_for.count() > 0) {
        return {false, quoted_key(key) + " is on hold: " + core::printable(record.blocked_reason)};
    }
    if (!record.holders.empty()) {
        return {false, quoted_key(key) + " is held by " + describe_holder(record.holders.front())};
    }
    if (kept && record.kept->fresh) {
        const auto state = kept->state == recipes::slot_state::done ? slot_verdict::done
                           : kept->next_at_ms != 0                  ? slot_verdict::waiting
                                                                    : slot_verdict::failed;
        return {false, describe_slot(key, state, kept)};
    }
    if (kept) {
        return {true,
                "attempt " + std::to_string(kept->attempt + 1) + "; before that " +
                    std::string(recipes::name_of(kept->state)) + " on " + who_ran(*kept)};
    }
    return {true, "attempt 1"};
}

int look_only(const once_options& options, const store_choice& store) {
    auto through = open_client(store, "dibs once");
    std::error_code error;
    const auto record = through.inspect(options.run.key, error);
    if (error) {
        throw failure(status_of(error), quoted_key(options.run.key) + ": " + error.message());
    }
    auto found = look_ahead(options, record.value_or(dibs::record{}));
    if (found.would_run) {
        const auto of_job = through.inspect(options.terms.job, error);
        if (error) {
            throw failure(status_of(error), quoted_key(options.terms.job) + ": " + error.message());
        }
        if (of_job && of_job->blocked_for.count() > 0) {
            found = {false,
                     quoted_key(options.terms.job) +
                         " is on hold: " + core::printable(of_job->blocked_reason)};
        }
    }
    if (options.condition) {
        if (options.run.verbose) {
            say(found.why);
        }
        return found.would_run ? 0 : 1;
    }
    std::string text = "slot        " + options.terms.slot + "\n";
    if (options.bounds) {
        const auto shown = [](core::wall_instant at) {
            return instant_text(
                std::chrono::duration_cast<milliseconds>(at.time_since_epoch()).count());
        };
        text += "from        " + shown(options.bounds->begin) + "\n";
        text += "until       " + shown(options.bounds->end) + "\n";
    }
    text += std::string("would run   ") + (found.would_run ? "yes" : "no") + "\n";
    text += "because     " + found.why + "\n";
    deliver(text);
    return exit_status::ok;
}

int once_checked(const global_options& global, const arguments& found) {
    const auto file = find_settings(real_surroundings());
    auto checked = check_options(found, file);
    if (!checked.run.status_file.empty()) {
        if (const auto fault = fault_of_report_path(checked.run.status_file); !fault.empty()) {
            throw usage_error("--status-file or --status-fd: " +
                              core::printable(checked.run.status_file) + ": " + fault);
        }
    }
    const auto* flag = checked.run.store ? &*checked.run.store : global.store;
    auto store = settle_store(flag, file, checked.run.quiet);
    if (checked.dry_run || checked.condition) {
        return look_only(checked, store);
    }
    return once_session(std::move(checked), std::move(store)).run();
}

}  // namespace

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

int once_command(const global_options& global, words given) {
    const auto found = parse_arguments(once_syntax(), given);
    if (found.has("help")) {
        deliver(help_text(once_syntax()));
        return exit_status::ok;
    }
    if (!found.has("condition")) {
        return once_checked(global, found);
    }
    try {
        return once_checked(global, found);
    } catch (const failure& fault) {
        // 1 to 254 would pass for "nothing to do".
        say(fault.what());
        return 255;
    }
}

}  // namespace dibs::cli
