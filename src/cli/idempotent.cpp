// SPDX-License-Identifier: Apache-2.0
// dibs idempotent: a command that is run once per key; its output and status are given again.
#include "cli/captured_output.hpp"
#include "cli/commands.hpp"
#include "cli/duration.hpp"
#include "cli/exit_status.hpp"
#include "cli/failure.hpp"
#include "cli/held_child.hpp"
#include "cli/idempotent_options.hpp"
#include "cli/option_table.hpp"
#include "cli/running_report.hpp"
#include "cli/speech.hpp"
#include "cli/store_access.hpp"
#include "cli/supervisor/boot_time.hpp"
#include "cli/supervisor/interruption.hpp"
#include "cli/waiting_line.hpp"
#include "client/idempotent_work.hpp"
#include "core/key.hpp"

#include <dibs/dibs.hpp>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

namespace dibs::cli {

namespace {

using detail::work_verdict;
using std::chrono::milliseconds;

class idempotent_session {
  public:
    idempotent_session(idempotent_command_options options, store_choice store)
        : options_(std::move(options)),
          store_(std::move(store)),
          report_(options_.run.status_file, options_.run.key, store_) {}

    int run() {
        int status = exit_status::our_bug;
        try {
            status = claim_and_run();
        } catch (const failure& fault) {
            status = fault.status();
            tell(status == exit_status::unavailable ? "unavailable" : "invalid", fault.what());
        } catch (const std::exception& fault) {
            tell("invalid", fault.what());
        }
        report_.write(status);
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
            report_.write(exit_status::signal_base + signal);
            ::_exit(exit_status::signal_base + signal);
        });
        const auto opened_at = boot_now();
        auto through = open_client(store_, options_.terms.command);
        const auto spent = std::chrono::duration_cast<milliseconds>(boot_now() - opened_at);
        options_.terms.acquire.timeout = std::max(store_patience - spent, milliseconds{100});
        auto found = claim(through, interrupted.stop());
        if (const int signal = interrupted.finish(); signal != 0) {
            report_.outcome = "signal";
            report_.message = std::string("ended by ") + signal_name(signal) + " while waiting";
            if (found.granted) {
                // Nothing was run: whoever comes next may.
                std::error_code ignored;
                (void)detail::abandon_work(through, *found.granted, ignored);
            }
            return exit_status::signal_base + signal;
        }
        return found.granted ? run_child(through, found, desk, guarded) : not_granted(found);
    }

    detail::work_claim claim(client& through, std::stop_token stop) {
        const waiting_line::terms shown_wait{
            .how = waiting_line::fitting(options_.run.verbose, options_.run.quiet),
            .key = options_.run.key,
            .also = {},
            .wait = options_.run.wait};
        const waiting_line waiting(through, shown_wait);
        return detail::claim_work(through, options_.terms, std::move(stop));
    }

    int not_granted(const detail::work_claim& found) {
        const auto about = quoted_key(options_.run.key);
        switch (found.verdict) {
            case work_verdict::answered:
                return replay(*found.found);
            case work_verdict::differs:
                throw failure(exit_status::differs, found.message);
            case work_verdict::in_doubt:
                throw failure(exit_status::refused, found.message);
            case work_verdict::in_flight:
            case work_verdict::blocked:
                break;
            case work_verdict::granted:
            case work_verdict::trouble:
                throw failure(status_of(found.error),
                              about + ": " + found.message + "; the command was not started");
        }
        const bool waited = options_.run.wait > milliseconds::zero();
        auto text = about;
        if (found.verdict == work_verdict::blocked) {
            report_.outcome = "blocked";
            text += " " + describe_hold(found.blocked_reason, found.retry_after) + "; " +
                    how_to_lift(options_.run.key);
        } else {
            report_.outcome = waited ? "wait_over" : "running";
            text += " is being done";
        }
        if (!found.holders.empty()) {
            report_.holder = found.holders.front();
            text += "; held by " + describe_holder(found.holders.front());
        }
        if (waited) {
            text += "; waited " + show_duration(options_.run.wait);
        }
        report_.message = text + "; store " + report_.store;
        if (!options_.run.quiet) {
            say(report_.message);
        }
        return options_.run.held_code;
    }

    int replay(const recipes::idempotent_record& kept) {
        report_.outcome = "done";
        report_.message = "done before, by " + core::printable(kept.host) + " (pid " +
                          std::to_string(kept.pid) + ")";
        if (options_.run.verbose) {
            say(quoted_key(options_.run.key) + " was " + report_.message);
        }
        if (kept.state == recipes::idempotent_state::failed && kept.status == exit_status::ok) {
            throw failure(exit_status::trouble,
                          quoted_key(options_.run.key) + ": " + core::printable(kept.answer));
        }
        deliver(kept.answer);
        return kept.status;
    }

    int run_child(client& through, detail::work_claim& found, signal_desk& desk, guard& guarded) {
        auto& held = *found.granted;
        report_.fence = held.last_fence();
        captured_output output(idempotent_answer_bytes_max);
        child_terms terms;
        terms.key = options_.run.key;
        terms.command = options_.run.command;
        terms.ttl = options_.run.ttl;
        terms.grace = options_.run.grace;
        terms.max_runtime = options_.run.max_runtime;
        terms.verbose = options_.run.verbose;
        terms.store = store_;
        terms.output = output.descriptor();
        terms.variables = {"DIBS_IDEMPOTENCY_KEY=" + options_.run.key,
                           "DIBS_ATTEMPT=" + std::to_string(found.mine.attempt)};
        const auto end = run_held_child(through, held_leases(held), terms, desk, guarded);
        auto written = output.finish();

        lease_end ended;
        ended.fence = report_.fence;
        ended.given_back = true;
        const auto so_far = judge(terms, end, ended);
        auto mine = found.mine;
        mine.status = so_far.status;
        mine.state = mine.status == exit_status::ok ? recipes::idempotent_state::done
                                                    : recipes::idempotent_state::failed;
        mine.answer = written.bytes;
        if (written.too_long) {
            mine.state = recipes::idempotent_state::failed;
            mine.answer = "its output was longer than 1 MiB, and was not kept";
        }
        ended.given_back = leave(through, held, so_far, end, std::move(mine), ended.release_error);
        ended.lost_reason = ended.given_back ? std::error_code{} : held.lost_reason();

        auto verdict = judge(terms, end, ended);
        report_.outcome = verdict.outcome;
        if (verdict.lost()) {
            tell(verdict.outcome, verdict.message);
            return verdict.status;
        }
        if (ended.release_error) {
            verdict.remark = "the answer of " + quoted_key(terms.key) + " could not be kept (" +
                             ended.release_error.message() + "); it may be done again";
        }
        for (const auto& text : {verdict.remark, verdict.message}) {
            if (!text.empty()) {
                say(text);
            }
        }
        report_.message = verdict.message;
        deliver(written.bytes);
        if (written.too_long) {
            say("the output of " + quoted_key(terms.key) +
                " is longer than 1 MiB: the rest is cut off, and nothing of it is kept");
            return verdict.status == exit_status::ok ? exit_status::trouble : verdict.status;
        }
        return verdict.status;
    }

    /// What becomes of the key. Whether it is given back.
    bool leave(client& through,
               lease& held,
               const judgement& so_far,
               const ending& end,
               recipes::idempotent_record mine,
               std::error_code& error) const {
        const auto& terms = options_.terms;
        const bool never_ran = end.how != ending::kind::ended;
        const bool by_itself = so_far.outcome == "child" && end.killed_by == 0;
        const bool answers = by_itself && (mine.status == exit_status::ok || terms.at_most_once ||
                                           options_.keep_failures);
        if (answers) {
            return detail::keep_answer(through, held, terms, std::move(mine), error) ==
                   release_outcome::released;
        }
        if (terms.at_most_once && !never_ran) {
            // The mark stays: what it has done is unknown.
            return held.release(error) == release_outcome::released;
        }
        return detail::abandon_work(through, held, error) == release_outcome::released;
    }

    void tell(std::string_view outcome, const std::string& text) {
        report_.outcome = outcome;
        report_.message = text;
        say(text);
    }

    idempotent_command_options options_;
    store_choice store_;
    running_report report_;
};

int idempotent_checked(const global_options& global, const arguments& found) {
    const auto file = find_settings(real_surroundings());
    auto checked = check_idempotent_options(found, file);
    claim_report_path(checked.run.status_file);
    const auto* flag = checked.run.store ? &*checked.run.store : global.store;
    auto store = settle_store(flag, file, checked.run.quiet);
    return idempotent_session(std::move(checked), std::move(store)).run();
}

}  // namespace

int idempotent_command(const global_options& global, words given) {
    const auto found = parse_arguments(idempotent_syntax(), given);
    if (found.has("help")) {
        deliver(help_text(idempotent_syntax()));
        return exit_status::ok;
    }
    const auto report = report_path(found);
    try {
        return idempotent_checked(global, found);
    } catch (const failure& fault) {
        report_refusal(report, found.operands.empty() ? "" : found.operands.front(), fault);
        throw;
    }
}

}  // namespace dibs::cli
