// SPDX-License-Identifier: Apache-2.0
#pragma once
// A command that runs while a lease is held: what `run`, `once` and `elect` have in common once the
// lease is there.

#include "cli/run/running_report.hpp"
#include "cli/settings/settings.hpp"
#include "cli/supervisor/guard.hpp"
#include "cli/supervisor/signals.hpp"
#include "cli/supervisor/supervise.hpp"

#include <dibs/client.hpp>

#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace dibs::cli {

struct child_terms {
    std::string key;
    std::vector<std::string> command;
    std::chrono::milliseconds ttl{};
    std::chrono::milliseconds grace{};
    bool renew = true;
    std::optional<std::chrono::milliseconds> max_hold;
    std::optional<std::chrono::milliseconds> max_runtime;
    bool verbose = false;
    store_choice store;
    std::vector<std::string> variables;  ///< NAME=value, for the child beside those of the lease
    int output = -1;                     ///< what becomes the command's stdout; -1: ours
    int errors = -1;                     ///< and its stderr
};

/// What the command runs under.
struct held_leases {
    explicit held_leases(lease& one) : all{&one}, lost(one.lost()) {}
    held_leases(std::vector<lease*> several, std::stop_token any_lost)
        : all(std::move(several)), lost(std::move(any_lost)) {}

    std::vector<lease*> all;  ///< the one that DIBS_KEY names first
    std::stop_token lost;     ///< of any of them
};

/// Runs the command until it has ended, or was stopped because a lease could not be kept.
[[nodiscard]] ending run_held_child(client& through,
                                    const held_leases& held,
                                    const child_terms& terms,
                                    signal_desk& desk,
                                    guard& guarded);

/// For `interruption`: a wait that a signal cannot end in time ends with the process, which tells that, and has no child.
[[nodiscard]] std::function<void(int)> end_by_signal(running_report& report, guard& guarded);

/// How the lease ended, after the child.
struct lease_end {
    std::uint64_t fence = 0;
    std::error_code lost_reason;    ///< zero: it was held until it was given back
    std::error_code release_error;  ///< it could not be given back
    bool given_back = false;        ///< false without an error: it was not held any more
};

struct judgement {
    int status = 0;
    std::string outcome;  ///< as in status_report
    std::string message;  ///< what to tell; empty with an ordinary end
    std::string remark;   ///< to be told beside it
    [[nodiscard]] bool lost() const { return outcome == "lost" || outcome == "max_hold"; }
};

/// What the end of the child and the end of the lease mean together.
[[nodiscard]] judgement judge(const child_terms& terms, const ending& end, const lease_end& lease);

}  // namespace dibs::cli
