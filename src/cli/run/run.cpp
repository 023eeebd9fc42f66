// SPDX-License-Identifier: Apache-2.0
// dibs run: a command while a key is held.
#include "cli/commands.hpp"
#include "cli/options/common_options.hpp"
#include "cli/options/duration.hpp"
#include "cli/output/failure.hpp"
#include "cli/output/redact.hpp"
#include "cli/output/speech.hpp"
#include "cli/run/child_environment.hpp"
#include "cli/run/held_child.hpp"
#include "cli/run/run_options.hpp"
#include "cli/run/running_report.hpp"
#include "cli/run/waiting_line.hpp"
#include "cli/settings/awaited_store.hpp"
#include "cli/supervisor/boot_time.hpp"
#include "cli/supervisor/guard.hpp"
#include "cli/supervisor/interruption.hpp"
#include "cli/supervisor/signals.hpp"
#include "client/attempt.hpp"

#include <dibs/dibs.hpp>

#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace dibs::cli {

namespace {

using std::chrono::milliseconds;

class run_session {
  public:
    run_session(run_options options, store_choice store)
        : options_(std::move(options)),
          store_(std::move(store)),
          report_(options_.status_file, options_.key, store_) {}

    /// The exit status, whatever happens; and the status file says the same.
    int run() {
        int status = exit_status::our_bug;
        try {
            status = hold_and_run();
        } catch (const failure& fault) {
            status = fault.status();
            report_.outcome = status == exit_status::unavailable ? "unavailable" : "invalid";
            report_.message = fault.what();
            say(fault.what());
        } catch (const std::system_error& fault) {
            status = exit_status::system;
            say_not_started(fault.what());
        } catch (const std::bad_alloc&) {
            status = exit_status::system;
            say_not_started("out of memory");
        } catch (const std::exception& fault) {
            say_not_started(fault.what());
        }
        report_.write(status);
        return status;
    }

  private:
    int hold_and_run() {
        signal_desk desk;
        // Before the first thread, and so before the client.
        guard guarded(options_.grace);
        interruption interrupted(desk, end_by_signal(report_, guarded));
        const auto opened_at = boot_now();
        auto through = open_store(interrupted.stop());
        auto found =
            through ? acquire(*through, interrupted.stop(), opened_at) : detail::joint_attempt{};
        if (const int signal = interrupted.finish(); signal != 0) {
            // A lease that came all the same is given back by its destructor, the child was never
            // started.
            report_.outcome = "signal";
            report_.message = std::string("ended by ") + signal_name(signal) + " while waiting";
            if (found.granted) {
                std::error_code ignored;
                (void)found.granted->release(ignored);
            }
            return exit_status::signal_base + signal;
        }
        if (!found.granted) {
            return not_granted(found);
        }
        return run_child(*through, *found.granted, desk, guarded);
    }

    /// Null: interrupted.
    std::optional<client> open_store(const std::stop_token& stop) {
        try {
            return open_awaited(store_,
                                redact_command(options_.command),
                                {options_.key, options_.wait, options_.quiet},
                                stop);
        } catch (const failure& fault) {
            throw failure(fault.status(), not_started(fault.what()));
        }
    }

    [[nodiscard]] std::string not_started(const std::string& why) const {
        return cli::not_started(options_.key, why);
    }

    void say_not_started(const std::string& why) {
        report_.outcome = "not_started";
        report_.message = not_started(why);
        say(report_.message);
    }

    [[nodiscard]] std::vector<std::string> keys() const {
        std::vector<std::string> all{options_.key};
        for (const auto& also : options_.also) {
            if (std::find(all.begin(), all.end(), also) == all.end()) {
                all.push_back(also);
            }
        }
        return all;
    }

    /// Our own parent would wait for us, and we for it.
    [[nodiscard]] bool parent_holds(const char* outer, const detail::joint_attempt& found) const {
        return std::any_of(
            found.why.holders.begin(), found.why.holders.end(), [&](const auto& who) {
                return held_by_outer_run(outer, found.key, who.fence);
            });
    }

    detail::joint_attempt acquire(client& through, std::stop_token stop, core::instant opened_at) {
        acquire_options wanted;
        wanted.mode = options_.mode;
        wanted.ttl = options_.ttl;
        wanted.renew = options_.renew;
        wanted.renew_every = options_.renew_every;
        const auto spent = std::chrono::duration_cast<milliseconds>(boot_now() - opened_at);
        wanted.timeout = patience_left(options_.wait, spent);

        const char* outer = std::getenv("DIBS_HELD_KEYS");
        const auto all = keys();
        const bool named = outer != nullptr && std::any_of(all.begin(), all.end(), [&](auto& key) {
                               return named_by_outer_run(outer, key);
                           });
        if (named) {
            // A variable may be older than the lease it speaks of: the store knows.
            auto first = detail::acquire_all_with_reason(through, all, wanted, stop);
            held_by_parent_ = !first.granted && parent_holds(outer, first);
            if (first.granted || first.why.error || held_by_parent_ ||
                options_.wait <= milliseconds::zero()) {
                return first;
            }
        }
        wanted.wait = left_of(options_.wait, spent);
        wanted.order = options_.queue ? order::queue : order::race;
        const waiting_line::terms shown_wait{
            .how = waiting_line::fitting(options_.verbose, options_.quiet),
            .key = options_.key,
            .also = all.size() > 1 ? all[1] : std::string{},
            .wait = options_.wait};
        const waiting_line waiting(through, shown_wait);
        return detail::acquire_all_with_reason(through, all, wanted, std::move(stop));
    }

    int not_granted(const detail::joint_attempt& joint) {
        const auto& found = joint.why;
        if (found.error) {
            throw failure(status_of(found.error),
                          found.message.empty() ? not_started(found.error.message() + " (store " +
                                                              report_.store + ")")
                                                : found.message + "; the command was not started");
        }
        const bool waited = options_.wait > milliseconds::zero() && !held_by_parent_ && !found.done;
        std::string text = quoted_key(joint.key);
        if (!found.holders.empty()) {
            report_.outcome = waited ? "wait_over" : "held";
            report_.holder = found.holders.front();
            text += held_by_parent_ ? " is already held by the parent of this command, "
                                    : " is held by ";
            text += describe_holders(found.holders);
        } else if (found.blocked) {
            report_.outcome = "blocked";
            text += " is on hold " + describe_hold(found.blocked_reason, found.retry_after) +
                    "; store " + report_.store + "; " + how_to_lift(joint.key);
        } else if (found.done) {
            report_.outcome = "done";
            text += " is done: a result is kept that is still fresh";
        } else {
            report_.outcome = waited ? "wait_over" : "held";
            text += found.queue_first ? " " + std::string(first_the_queue)
                                      : " was held by somebody else";
        }
        if (waited) {
            text += "; waited " + show_duration(options_.wait);
        }
        report_.message = text;
        // A skip is what a cron job on several hosts is for: no mail about it.
        const bool loud = options_.verbose || options_.wait > milliseconds::zero() ||
                          held_by_parent_ || ::isatty(STDERR_FILENO) == 1;
        if (loud && !options_.quiet) {
            say(text);
        }
        return options_.held_code;
    }

    int run_child(client& through, lease_set& held, signal_desk& desk, guard& guarded) {
        std::vector<lease*> leases;
        for (const auto& key : keys()) {
            leases.push_back(held.find(key));
        }
        report_.fence = leases.front()->last_fence();
        for (std::size_t at = 1; at < leases.size(); ++at) {
            report_.also.emplace_back(leases[at]->key(), leases[at]->last_fence());
        }
        child_terms terms;
        terms.key = options_.key;
        terms.command = options_.command;
        terms.ttl = options_.ttl;
        terms.grace = options_.grace;
        terms.renew = options_.renew;
        terms.max_hold = options_.max_hold;
        terms.max_runtime = options_.max_runtime;
        terms.verbose = options_.verbose;
        terms.store = store_;
        if (options_.leads) {
            terms.variables = {"DIBS_TERM=" + std::to_string(report_.fence)};
        }
        const auto end =
            run_held_child(through, held_leases(leases, held.lost()), terms, desk, guarded);

        lease_end ended;
        ended.fence = report_.fence;
        ended.given_back = held.release(ended.release_error) == release_outcome::released;
        for (const auto* one : leases) {
            if (one->lost_reason() && !ended.lost_reason) {
                ended.lost_reason = one->lost_reason();
                ended.fence = one->last_fence();
                terms.key = one->key();
            }
        }
        const auto found = judge(terms, end, ended);
        report_.outcome = found.outcome;
        report_.message = found.message;
        for (const auto& text : {found.remark, found.message}) {
            if (!text.empty()) {
                say(text);
            }
        }
        if (found.outcome == "child" && end.killed_by != 0) {
            report_.message = std::string("killed by ") + signal_name(end.killed_by);
        }
        const bool ended_by_itself =
            found.outcome == "child" && found.status == exit_status::ok && desk.told_to_end() == 0;
        return ended_by_itself ? options_.ended_code : found.status;
    }

    run_options options_;
    store_choice store_;
    running_report report_;
    bool held_by_parent_ = false;
};

}  // namespace

namespace {

int run_checked(const global_options& global, const arguments& found, bool leads) {
    const auto file = find_settings(real_surroundings());
    auto options = check_run_options(found, file);
    options.leads = leads;
    if (leads && !found.has("wait")) {
        options.wait = dibs::forever;
    }
    common::require_wait(options.queue, options.wait);
    claim_report_path(options.status_file);
    const auto* flag = options.store ? &*options.store : global.store;
    auto store = settle_store(flag, file, options.quiet);
    if (::strncasecmp(store.url.c_str(), "memory:", 7) == 0 && !options.quiet) {
        say("store memory: lives in this process alone, so it excludes nobody");
    }
    return run_session(std::move(options), std::move(store)).run();
}

/// As far as it is known when settings are refused.
std::string key_given(const arguments& found) {
    if (found.has("key")) {
        return *found.value("key");
    }
    return found.operands.empty() ? std::string{} : found.operands.front();
}

int run_by_syntax(const command_syntax& syntax,
                  const global_options& global,
                  words given,
                  bool leads) {
    const auto found = parse_arguments(syntax, given);
    if (found.has("help")) {
        const auto text = help_text(syntax);
        deliver(text);
        return exit_status::ok;
    }
    const auto report = report_path(found);
    try {
        return run_checked(global, found, leads);
    } catch (const failure& fault) {
        report_refusal(report, key_given(found), fault);
        throw;
    }
}

}  // namespace

int run_command(const global_options& global, words given) {
    return run_by_syntax(run_syntax(), global, given, false);
}

int elect_command(const global_options& global, words given) {
    return run_by_syntax(elect_syntax(), global, given, true);
}

}  // namespace dibs::cli
