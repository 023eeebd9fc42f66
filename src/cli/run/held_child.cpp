// SPDX-License-Identifier: Apache-2.0
#include "cli/run/held_child.hpp"

#include "cli/options/duration.hpp"
#include "cli/output/exit_status.hpp"
#include "cli/output/redact.hpp"
#include "cli/output/speech.hpp"
#include "cli/run/child_environment.hpp"
#include "cli/supervisor/boot_time.hpp"
#include "client/leases/supervision.hpp"
#include "core/key.hpp"

#include <dibs/dibs.hpp>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <memory>

namespace dibs::cli {

namespace {

/// The command must stop before the first of its leases can end.
void watch_deadlines(const held_leases& held, guard_page& page) {
    const auto deadlines = std::make_shared<std::vector<std::int64_t>>(
        held.all.size(), std::numeric_limits<std::int64_t>::max());
    for (std::size_t at = 0; at < held.all.size(); ++at) {
        // All are told on the client's executor, one at a time.
        detail::on_deadline(
            *held.all[at], [&page, deadlines, at](std::int64_t boottime_ns) noexcept {
                (*deadlines)[at] = boottime_ns;
                page.deadline_ns.store(*std::min_element(deadlines->begin(), deadlines->end()));
            });
    }
}

}  // namespace

ending run_held_child(client& through,
                      const held_leases& held,
                      const child_terms& terms,
                      signal_desk& desk,
                      guard& guarded) {
    watch_deadlines(held, guarded.page());
    lease_facts facts;
    facts.key = terms.key;
    facts.fence = held.all.front()->last_fence();
    for (std::size_t at = 1; at < held.all.size(); ++at) {
        facts.also.emplace_back(held.all[at]->key(), held.all[at]->last_fence());
    }
    facts.ttl = terms.ttl;
    facts.deadline_boottime_ns = guarded.page().deadline_ns.load();
    facts.run_id = new_run_id();
    facts.store = terms.store;

    auto inherited = own_environment();
    for (const auto& variable : terms.variables) {
        const auto name = variable.substr(0, variable.find('=') + 1);
        std::erase_if(inherited, [&](const auto& entry) { return entry.starts_with(name); });
    }
    supervision what;
    what.child.command = terms.command;
    what.child.environment = child_environment(inherited, facts);
    what.child.environment.insert(
        what.child.environment.end(), terms.variables.begin(), terms.variables.end());
    what.child.liveness = detail::liveness_descriptor(through);
    what.child.guard_socket = guarded.socket();
    what.child.output = terms.output;
    what.child.errors = terms.errors;
    what.lost = held.lost;
    what.limits.grace = terms.grace;
    const auto now = boot_now();
    if (terms.max_hold) {
        what.limits.max_hold = now + *terms.max_hold;
    }
    if (terms.max_runtime) {
        what.limits.max_runtime = now + *terms.max_runtime;
    }
    if (terms.verbose) {
        what.tell = [](std::string_view text) { say(text); };
        say("holding " + quoted_key(terms.key) + ", fence " + std::to_string(facts.fence));
        for (const auto& [key, fence] : facts.also) {
            say("holding " + quoted_key(key) + ", fence " + std::to_string(fence));
        }
    }
    auto end = supervise(what, desk, guarded);
    guarded.page().over.store(true);
    for (auto* one : held.all) {
        if (end.store_trouble.empty()) {
            end.store_trouble = detail::renewal_trouble(*one);
        }
    }
    return end;
}

namespace {

std::string why_not_started(const ending& end) {
    const std::string name = end.tried.empty() ? "\"\"" : core::printable(end.tried);
    const std::string said = name + ": " + std::strerror(end.exec_error);
    if (end.exec_error == ENOEXEC) {
        return said + "; a script needs a first line such as #!/bin/sh";
    }
    if (end.exec_error == ENOENT && end.tried.find('/') != std::string::npos &&
        ::access(end.tried.c_str(), F_OK) == 0) {
        return said + ": the file is there, but not the interpreter that it names";
    }
    return said;
}

std::string words_of_store(const ending& end) {
    constexpr std::size_t most = 500;
    return end.store_trouble.empty()
               ? std::string{}
               : " (the last renewal: " + core::printable(end.store_trouble, most) + ")";
}

}  // namespace

std::function<void(int)> end_by_signal(running_report& report, guard& guarded) {
    return [&report, &guarded](int signal) {
        guarded.page().over.store(true);
        report.outcome = "signal";
        report.write(exit_status::signal_base + signal);
        ::_exit(exit_status::signal_base + signal);
    };
}

judgement judge(const child_terms& terms, const ending& end, const lease_end& lease) {
    const auto lease_words = quoted_key(terms.key) + " (fence " + std::to_string(lease.fence) +
                             ", store " + redact_url(terms.store.url) + ")";
    const bool never_ran = end.how != ending::kind::ended;
    const auto told = [](int status, const char* outcome, std::string message) {
        judgement made;
        made.status = status;
        made.outcome = outcome;
        made.message = std::move(message);
        return made;
    };
    switch (end.stopped) {
        case stop_cause::deadline:
            return told(exit_status::lost,
                        "lost",
                        "the lease on " + lease_words +
                            " could not be kept: no renewal succeeded in time" +
                            (terms.renew ? "" : " (--no-renew)") + words_of_store(end) +
                            "; the command was stopped before the lease could end");
        case stop_cause::lost:
            return told(exit_status::lost,
                        "lost",
                        "the lease on " + lease_words +
                            " was lost: " + lease.lost_reason.message() +
                            (lease.lost_reason == errc::lease_expired ? words_of_store(end) : "") +
                            "; the command was stopped");
        case stop_cause::max_hold:
            return told(exit_status::lost,
                        "max_hold",
                        quoted_key(terms.key) + " was held for as long as --max-hold " +
                            show_duration(*terms.max_hold) + " allows; the command was stopped");
        case stop_cause::none:
        case stop_cause::max_runtime:
        case stop_cause::forced:
        case stop_cause::wrapper_gone:
            break;
    }
    const bool not_ours = !lease.release_error && !lease.given_back;
    if (!never_ran &&
        (not_ours || lease.lost_reason || lease.release_error == condition::lease_lost)) {
        const auto why = lease.lost_reason
                             ? lease.lost_reason.message()
                             : std::string("the store says that it is not held any more");
        return told(exit_status::lost,
                    "lost",
                    "the lease on " + lease_words + " was lost before the command had ended: " +
                        why + "; the command ended with status " + std::to_string(end.status));
    }
    judgement made;
    if (never_ran) {
        made = told(end.status,
                    "not_started",
                    quoted_key(terms.key) + ": " + why_not_started(end) +
                        "; the command was not started" +
                        (lease.given_back ? ", and the key was given back" : ""));
    } else if (end.stopped == stop_cause::max_runtime) {
        made = told(
            exit_status::max_runtime,
            "max_runtime",
            "the command was stopped after --max-runtime " + show_duration(*terms.max_runtime));
    } else {
        made = told(end.status, "child", {});
    }
    if (lease.release_error) {
        // The work was protected to its end. Only the next holder has to wait for the expiry.
        made.remark = lease_words + " could not be given back (" + lease.release_error.message() +
                      "); it ends by itself";
    }
    return made;
}

}  // namespace dibs::cli
