// SPDX-License-Identifier: Apache-2.0
#pragma once
// A command that is run when a recipe grants it, and is not when somebody has done it before: what `once` and `idempotent`
// have in common. `Claim` is what the recipe's claim gives; it has `granted`, an optional lease.

#include "cli/output/exit_status.hpp"
#include "cli/output/failure.hpp"
#include "cli/output/speech.hpp"
#include "cli/run/held_child.hpp"
#include "cli/run/run_options.hpp"
#include "cli/run/running_report.hpp"
#include "cli/run/waiting_line.hpp"
#include "cli/settings/awaited_store.hpp"
#include "cli/supervisor/boot_time.hpp"
#include "cli/supervisor/interruption.hpp"

#include <dibs/dibs.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace dibs::cli {

template <typename Claim>
class claimed_session {
  public:
    claimed_session(const claimed_session&) = delete;
    claimed_session& operator=(const claimed_session&) = delete;
    virtual ~claimed_session() = default;

    /// The exit status; the report is written.
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

  protected:
    /// `how` and `acquire` must outlive this.
    claimed_session(const run_options& how,
                    acquire_options& acquire,
                    std::string told_command,
                    std::string also_waited_for,
                    store_choice store)
        : store_(std::move(store)),
          report_(how.status_file, how.key, store_),
          how_(how),
          acquire_(acquire),
          told_command_(std::move(told_command)),
          also_(std::move(also_waited_for)) {}

    virtual Claim claim(client& through, std::stop_token stop) = 0;
    /// It was granted, and nothing will be run.
    virtual void withdraw(client& through, Claim& found) = 0;
    virtual int not_granted(client& through, const Claim& found) = 0;
    virtual int run_child(client& through, Claim& found, signal_desk& desk, guard& guarded) = 0;

    [[nodiscard]] child_terms terms_of_child() const {
        child_terms terms;
        terms.key = how_.key;
        terms.command = how_.command;
        terms.ttl = how_.ttl;
        terms.grace = how_.grace;
        terms.max_runtime = how_.max_runtime;
        terms.verbose = how_.verbose;
        terms.store = store_;
        return terms;
    }

    void tell(std::string_view outcome, const std::string& text) {
        report_.outcome = outcome;
        report_.message = text;
        say(text);
    }

    const store_choice store_;
    running_report report_;

  private:
    int claim_and_run() {
        using std::chrono::milliseconds;
        signal_desk desk;
        // Before the first thread, and so before the client.
        guard guarded(how_.grace);
        interruption interrupted(desk, end_by_signal(report_, guarded));
        const auto opened_at = boot_now();
        auto through = open_store(interrupted.stop());
        const auto spent = std::chrono::duration_cast<milliseconds>(boot_now() - opened_at);
        acquire_.timeout = patience_left(how_.wait, spent);
        acquire_.wait = left_of(acquire_.wait, spent);
        auto found = through ? wait_for_claim(*through, interrupted.stop()) : Claim{};
        if (const int signal = interrupted.finish(); signal != 0) {
            report_.outcome = "signal";
            report_.message = std::string("ended by ") + signal_name(signal) + " while waiting";
            if (found.granted) {
                withdraw(*through, found);
            }
            return exit_status::signal_base + signal;
        }
        return found.granted ? run_child(*through, found, desk, guarded)
                             : not_granted(*through, found);
    }

    /// Null: interrupted.
    std::optional<client> open_store(const std::stop_token& stop) {
        try {
            return open_awaited(store_, told_command_, {how_.key, how_.wait, how_.quiet}, stop);
        } catch (const failure& fault) {
            throw failure(fault.status(), not_started(how_.key, fault.what()));
        }
    }

    Claim wait_for_claim(client& through, std::stop_token stop) {
        const waiting_line::terms shown_wait{.how = waiting_line::fitting(how_.verbose, how_.quiet),
                                             .key = how_.key,
                                             .also = also_,
                                             .wait = how_.wait};
        const waiting_line waiting(through, shown_wait);
        return claim(through, std::move(stop));
    }

    const run_options& how_;
    acquire_options& acquire_;
    const std::string told_command_;
    const std::string also_;
};

}  // namespace dibs::cli
