// SPDX-License-Identifier: Apache-2.0
#include "cli/once/once_session.hpp"

#include "cli/capture/output_tail.hpp"
#include "cli/once/slot_words.hpp"
#include "cli/options/duration.hpp"
#include "cli/output/exit_status.hpp"
#include "cli/output/failure.hpp"
#include "cli/output/speech.hpp"
#include "cli/run/claimed_session.hpp"
#include "cli/supervisor/boot_time.hpp"
#include "client/recipes/slot_run.hpp"
#include "core/key.hpp"
#include "recipes/once/slot_record.hpp"

#include <dibs/dibs.hpp>

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace dibs::cli {

namespace {

using detail::slot_verdict;
using std::chrono::milliseconds;

/// A note about a skip is not worth more.
constexpr auto note_patience = milliseconds{500};
/// How much later than its child the command may be reached by a signal that is meant for both.
constexpr auto signal_patience = milliseconds{100};

class once_session final : public claimed_session<detail::slot_claim> {
  public:
    /// `options` must outlive this.
    once_session(once_options& options, store_choice store)
        : claimed_session(options.run,
                          options.terms.acquire,
                          options.terms.command,
                          options.terms.job,
                          std::move(store)),
          options_(options) {}

    [[nodiscard]] const std::string& outcome() const noexcept { return report_.outcome; }

  private:
    detail::slot_claim claim(client& through, std::stop_token stop) override {
        return detail::claim_slot(through, options_.terms, std::move(stop));
    }

    /// It took the key of the slot, and runs nothing of it: a lock of `SET NX`, say.
    static bool is_held_by_another_program(const detail::slot_claim& found) {
        return found.verdict == slot_verdict::running && !found.holders.empty() &&
               found.holders.front().fence == 0;
    }

    void withdraw(client& through, detail::slot_claim& found) override {
        detail::withdraw_slot(through, found, options_.terms);
    }

    int not_granted(client& through, const detail::slot_claim& found) override {
        if (found.error) {
            throw failure(status_of(found.error),
                          (found.message.empty()
                               ? quoted_key(options_.run.key) + ": " + found.error.message() +
                                     " (store " + report_.store + ")"
                               : found.message) +
                              "; the command was not started");
        }
        const bool waits = options_.run.wait > milliseconds::zero();
        const bool by_stranger = is_held_by_another_program(found);
        auto text = by_stranger ? quoted_key(options_.run.key) + " is not being run"
                                : describe_slot(options_.run.key, found.verdict, found.found);
        if (!found.holders.empty()) {
            report_.holder = found.holders.front();
            text += "; held by " + describe_holder(found.holders.front());
        }
        if (found.verdict == slot_verdict::blocked) {
            text += " " + describe_hold(found.blocked_reason, found.retry_after) + "; store " +
                    report_.store + "; " + how_to_lift(found.blocked_key);
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
            case slot_verdict::overlaps:
                report_.outcome = waits                                     ? "wait_over"
                                  : by_stranger                             ? "held"
                                  : found.verdict == slot_verdict::overlaps ? "overlaps"
                                                                            : "running";
                if (!waits && !by_stranger) {
                    status = options_.held_code.value_or(exit_status::ok);
                }
                break;
            case slot_verdict::waiting:
                report_.outcome = waits ? "wait_over" : "waiting";
                break;
            case slot_verdict::blocked:
                report_.outcome = "blocked";
                break;
            case slot_verdict::forgotten:
                report_.outcome = "forgotten";
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
        const bool news = (waits && status != exit_status::ok) || by_stranger ||
                          found.verdict == slot_verdict::forgotten;
        const bool loud = options_.run.verbose || news || ::isatty(STDERR_FILENO) == 1;
        if (loud && !options_.run.quiet) {
            say(text);
        }
        if (found.verdict != slot_verdict::forgotten && found.verdict != slot_verdict::overlaps &&
            !by_stranger) {
            detail::note_skip(through, options_.terms, note_patience);
        }
        return status;
    }

    int run_child(client& through,
                  detail::slot_claim& found,
                  signal_desk& desk,
                  guard& guarded) override {
        auto& held = *found.granted;
        const auto& slot = options_.terms;
        report_.fence = held.last_fence();
        auto terms = terms_of_child();
        terms.variables = {
            "DIBS_JOB=" + slot.job,
            "DIBS_SLOT=" + slot.slot,
            "DIBS_ATTEMPT=" + std::to_string(found.mine.attempt),
            "DIBS_IDEMPOTENCY_KEY=" + recipes::idempotency_key_of(slot.job, slot.slot)};
        std::optional<output_tail> tail;
        if (options_.keep_output > 0) {
            tail.emplace(options_.keep_output);
            terms.output = tail->output();
            terms.errors = tail->errors();
        }
        std::stop_source any_lost;
        const auto lose = [&any_lost] { any_lost.request_stop(); };
        const std::stop_callback on_loss(held.lost(), lose);
        const std::stop_callback on_lost_turn(found.turn ? found.turn->lost() : std::stop_token{},
                                              lose);
        std::vector<lease*> all{&held};
        if (found.turn) {
            all.push_back(&*found.turn);
        }
        const held_leases under(std::move(all), any_lost.get_token());
        const auto end = run_held_child(through, under, terms, desk, guarded);
        if (tail) {
            found.mine.output = tail->finish();
        }

        lease_end ended;
        ended.fence = report_.fence;
        ended.lost_reason = why_lost(found);
        ended.given_back = true;
        const auto so_far = judge(terms, end, ended);
        const int told_to_end = so_far.outcome == "child" && so_far.status != exit_status::ok
                                    ? end_signal(end, desk)
                                    : 0;
        const auto how = told_to_end != 0                   ? detail::run_end::interrupted
                         : so_far.status == exit_status::ok ? detail::run_end::succeeded
                                                            : detail::run_end::failed;
        ended.given_back =
            detail::finish_slot(
                through, held, slot, found.mine, how, so_far.status, ended.release_error) ==
            release_outcome::released;
        ended.lost_reason = why_lost(found);
        if (found.turn) {
            std::error_code ignored;
            (void)found.turn->release(ignored);
        }
        auto verdict = judge(terms, end, ended);
        if (ended.release_error && !verdict.lost()) {
            verdict.remark =
                "the outcome of " + quoted_key(terms.key) +
                (ended.release_error == condition::outcome_unknown ? " may not have been recorded ("
                                                                   : " could not be recorded (") +
                ended.release_error.message() +
                (slot.at_most_once ? "); it counts as never ended, and is not run again"
                                   : "); another host may run it again");
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
        if (verdict.outcome == "child" && told_to_end != 0) {
            report_.outcome = "interrupted";
            report_.message = std::string("stopped because of ") + signal_name(told_to_end);
        }
        if (options_.planned && told_to_end == 0) {
            forget_old_slots(through);
        }
        return verdict.status;
    }

    static std::error_code why_lost(const detail::slot_claim& found) {
        const auto why = found.granted->lost_reason();
        return why || !found.turn ? why : found.turn->lost_reason();
    }

    /// The signal by which we were told to end, if that may be why the child did; else 0. A supervisor that signals a whole
    /// group may have reached the child first.
    static int end_signal(const ending& end, signal_desk& desk) {
        const auto ends_with = [&](int signal) {
            return end.killed_by == signal || end.status == exit_status::signal_base + signal;
        };
        const auto until = boot_now() + signal_patience;
        while (desk.told_to_end() == 0 &&
               (ends_with(SIGTERM) || ends_with(SIGINT) || ends_with(SIGHUP))) {
            const auto left = std::chrono::ceil<milliseconds>(until - boot_now()).count();
            pollfd ready{desk.descriptor(), POLLIN, 0};
            if (left <= 0 || ::poll(&ready, 1, static_cast<int>(left)) == 0) {
                break;
            }
            while (desk.take()) {
            }
        }
        return desk.told_to_end();
    }

    void forget_old_slots(client& through) {
        detail::forget_slots(
            through, options_.terms, [&plan = options_.planned->plan](std::int64_t at_ms) {
                return plan.at(core::wall_instant{milliseconds{at_ms}}, {}).name;
            });
    }

    once_options& options_;
};

}  // namespace

slot_ending run_slot(once_options options, store_choice store) {
    once_session session(options, std::move(store));
    const int status = session.run();
    return {status, session.outcome()};
}

}  // namespace dibs::cli
