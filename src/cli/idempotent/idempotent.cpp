// SPDX-License-Identifier: Apache-2.0
// dibs idempotent: a command that is run once per key; its output and status are given again.
#include "cli/capture/captured_output.hpp"
#include "cli/commands.hpp"
#include "cli/idempotent/idempotent_options.hpp"
#include "cli/options/duration.hpp"
#include "cli/options/option_table.hpp"
#include "cli/output/exit_status.hpp"
#include "cli/output/failure.hpp"
#include "cli/output/speech.hpp"
#include "cli/run/claimed_session.hpp"
#include "client/recipes/idempotent_work.hpp"
#include "core/key.hpp"

#include <dibs/dibs.hpp>

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

class idempotent_session final : public claimed_session<detail::work_claim> {
  public:
    /// `options` must outlive this.
    idempotent_session(idempotent_command_options& options, store_choice store)
        : claimed_session(options.run,
                          options.terms.acquire,
                          options.terms.command,
                          {},
                          std::move(store)),
          options_(options) {}

  private:
    detail::work_claim claim(client& through, std::stop_token stop) override {
        return detail::claim_work(through, options_.terms, std::move(stop));
    }

    void withdraw(client& through, detail::work_claim& found) override {
        std::error_code ignored;
        (void)detail::abandon_work(through, *found.granted, ignored);
    }

    int not_granted(client& /*through*/, const detail::work_claim& found) override {
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
                              found.message + "; the command was not started");
        }
        const bool waited = options_.run.wait > milliseconds::zero();
        auto text = about;
        if (found.verdict == work_verdict::blocked) {
            report_.outcome = "blocked";
            text += " is on hold " + describe_hold(found.blocked_reason, found.retry_after) + "; " +
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

    int run_child(client& through,
                  detail::work_claim& found,
                  signal_desk& desk,
                  guard& guarded) override {
        auto& held = *found.granted;
        report_.fence = held.last_fence();
        captured_output output(idempotent_answer_bytes_max);
        auto terms = terms_of_child();
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
                             ended.release_error.message() +
                             (options_.terms.at_most_once
                                  ? "); since it may be done once only, it is in doubt from now on"
                                  : "); it may be done again");
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

    idempotent_command_options& options_;
};

int idempotent_checked(const global_options& global, const arguments& found) {
    const auto file = find_settings(real_surroundings());
    auto checked = check_idempotent_options(found, file);
    claim_report_path(checked.run.status_file);
    const auto* flag = checked.run.store ? &*checked.run.store : global.store;
    auto store = settle_store(flag, file, checked.run.quiet);
    return idempotent_session(checked, std::move(store)).run();
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
