// SPDX-License-Identifier: Apache-2.0
// dibs token: one valid token for all who share it, fetched by one of them when it is due.
#include "cli/capture/captured_command.hpp"
#include "cli/options/command_support.hpp"
#include "cli/output/speech.hpp"
#include "cli/run/child_environment.hpp"
#include "cli/supervisor/interruption.hpp"
#include "cli/supervisor/signals.hpp"
#include "cli/token/token_answer.hpp"
#include "cli/token/token_options.hpp"
#include "cli/token/token_report.hpp"
#include "client/checked_options.hpp"
#include "client/host/boot_time_source.hpp"
#include "client/host/this_process.hpp"
#include "client/recipes/sealing.hpp"
#include "client/recipes/shared_value.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

namespace dibs::cli {

namespace {

using detail::shared_value;
using recipes::cached_outcome;
using recipes::cached_verdict;
using std::chrono::milliseconds;

recipes::cached_terms terms_of(const token_options& wanted, const std::string& command) {
    acquire_options of_lease;
    of_lease.ttl = wanted.ttl;
    of_lease.wait = milliseconds::zero();
    recipes::cached_terms terms;
    terms.key = wanted.name;
    terms.acquire = detail::terms_of(of_lease);
    terms.refresh_permille = wanted.refresh_permille;
    terms.rotates = wanted.rotating;
    terms.retry_after_doubt = wanted.retry_after_doubt;
    terms.background = false;
    terms.who = detail::this_process(command);
    return terms;
}

/// What others can read on the way or in the store, they can use.
std::unique_ptr<recipes::sealer> sealer_for(const token_options& wanted,
                                            const store_in_use& store) {
    const auto keys = sealing_keys(wanted);
    if (keys) {
        std::string fault;
        auto made = detail::make_sealer(*keys, fault);
        if (!made) {
            throw configuration_error("the keys that seal tokens: " + fault);
        }
        return made;
    }
    const auto name = store.through.store().name;
    if (!wanted.plaintext && name != "sqlite" && name != "memory") {
        throw configuration_error(
            "store " + store.shown +
            ": tokens would lie there unencrypted. Make a key in a file for you alone, with "
            "`(umask "
            "077; dibs token new-key > FILE)`, and give it to all who share the token (--seal-key "
            "FILE, or DIBS_SEAL_KEYS); or say --plaintext");
    }
    return nullptr;
}

shared_value::blocking_fetch fetch_by(const std::vector<std::string>& command,
                                      const token_options& wanted,
                                      const signal_desk& desk) {
    return [&command, &wanted, &desk](recipes::fetch_request request, std::stop_token) {
        auto environment = own_environment();
        std::erase_if(environment, [](const std::string& one) {
            return one.starts_with("DIBS_TOKEN") || one.starts_with("DIBS_FENCE=") ||
                   one.starts_with("DIBS_SEAL_KEYS=");
        });
        environment.push_back("DIBS_TOKEN_NAME=" + wanted.name);
        environment.push_back("DIBS_FENCE=" + std::to_string(request.fence));
        auto successor = request.previous ? std::move(request.previous->successor) : std::string{};
        if (!successor.empty()) {
            successor += '\n';  // or `read` in a shell counts it as the end of the input
        }
        return answer_of(run_captured(desk, command, environment, successor, wanted.timeout),
                         wanted.life);
    };
}

int status_of_token(const cached_outcome& outcome, const std::error_code& error) {
    switch (outcome.verdict) {
        case cached_verdict::refused:
            return exit_status::refused;
        case cached_verdict::busy:
            return exit_status::held;
        case cached_verdict::failing:
            return exit_status::unavailable;
        default:
            return status_of(error);
    }
}

/// What `refresh` does not want: whatever there is now. Nothing when it was stopped.
std::optional<std::uint64_t> present_fence(store_in_use& store,
                                           const token_options& wanted,
                                           core::instant until,
                                           const std::stop_token& stop) {
    constexpr milliseconds pause{500};
    for (;;) {
        try {
            const auto record = store.through.inspect(wanted.name);
            return record && record->kept ? record->kept->fence : 0;
        } catch (const std::system_error& error) {
            const bool may_end =
                error.code() == condition::retryable || error.code() == condition::outcome_unknown;
            const bool waits = wanted.patient && may_end && detail::boot_time_now() < until;
            if (!waits) {
                throw store_failure(error.code(), error.what(), store);
            }
        }
        if (!rest(pause, stop)) {
            return std::nullopt;
        }
    }
}

told_token told(const token_options& wanted, cached_outcome outcome) {
    told_token token;
    token.name = wanted.name;
    token.value = std::move(outcome.value);
    token.fence = outcome.fence;
    token.generation = outcome.generation;
    if (outcome.valid_until != core::instant::max()) {
        token.valid_for = std::max(
            milliseconds::zero(),
            std::chrono::floor<milliseconds>(outcome.valid_until - detail::boot_time_now()));
    }
    return token;
}

int give_token(store_in_use& store,
               const token_options& wanted,
               const arguments& found,
               const signal_desk& desk,
               interruption& interrupted) {
    shared_value value{detail::lease_access::core(store.through),
                       terms_of(wanted, "dibs token"),
                       sealer_for(wanted, store),
                       fetch_by(found.command, wanted, desk)};
    recipes::cached_wish wish;
    wish.min_life = wanted.min_life;
    wish.patient = wanted.patient;
    wish.seen = wanted.seen;
    const auto until = detail::boot_time_now() + wanted.wait;
    if (wanted.action == token_action::refresh) {
        wish.seen = present_fence(store, wanted, until, interrupted.stop()).value_or(0);
    }
    wish.wait =
        std::max<core::nanoseconds>(core::nanoseconds::zero(), until - detail::boot_time_now());
    auto outcome = value.get(wish, interrupted.stop());
    if (const int signal = interrupted.finish(); signal != 0) {
        say_at_terminal("token " + quoted_key(wanted.name) +
                        ": interrupted; a fetch that has begun is brought to its end");
        if (const auto lost = value.finish(); !lost.empty()) {
            say(lost);
        }
        return exit_status::signal_base + signal;
    }
    std::string message;
    if (const auto error = value.error_of(outcome, message)) {
        if (const auto lost = value.finish(); !lost.empty() && lost != message) {
            say(lost);
        }
        if (outcome.verdict == cached_verdict::refused) {
            message += "; when that is mended, by a new login perhaps, `dibs token forget " +
                       shell_word(wanted.name) + "` lets it be fetched at once";
        }
        throw failure(status_of_token(outcome, error), message);
    }
    deliver(show_token(told(wanted, std::move(outcome)), wanted.output));
    return exit_status::ok;
}

int forget_token(store_in_use& store, const token_options& wanted) {
    shared_value value{detail::lease_access::core(store.through),
                       terms_of(wanted, "dibs token forget"),
                       nullptr,
                       [](recipes::fetch_request, std::stop_token) { return recipes::fetched{}; }};
    std::string message;
    const auto outcome = value.forget(wanted.wait, message);
    if (outcome.error) {
        throw failure(status_of_token(outcome, outcome.error), message);
    }
    return exit_status::ok;
}

}  // namespace

int token_command(const global_options& global, words given) {
    const auto found = parse_arguments(token_syntax(), given);
    if (helped(token_syntax(), found)) {
        return exit_status::ok;
    }
    auto wanted = check_token_options(found);
    if (wanted.action == token_action::new_key) {
        const auto key = detail::new_sealing_key();
        if (key.empty()) {
            throw failure(exit_status::system,
                          "this build cannot seal: it was made without OpenSSL");
        }
        deliver(key);
        return exit_status::ok;
    }
    if (wanted.action == token_action::status) {
        auto store = use_store(global, found, "dibs token status", store_use::existing);
        deliver(show_token_status(
            look_at(store, wanted.name), store.shown, wanted.output == token_output::json));
        return exit_status::ok;
    }
    // Before the first thread, and so before the client.
    signal_desk desk;
    interruption interrupted(desk, [](int signal) { ::_exit(exit_status::signal_base + signal); });
    const auto begun_at = detail::boot_time_now();
    const store_wait terms{wanted.name, wanted.patient ? wanted.wait : milliseconds::zero(), false};
    auto opened = use_awaited_store(global, found, "dibs token", terms, interrupted.stop());
    if (!opened) {
        return exit_status::signal_base + interrupted.finish();
    }
    auto& store = *opened;
    const auto spent = std::chrono::duration_cast<milliseconds>(detail::boot_time_now() - begun_at);
    wanted.wait = left_of(wanted.wait, spent);
    if (store.through.store().name == "memory") {
        throw configuration_error(
            "store memory: ends with this process, and shares nothing; name a store with --store "
            "or DIBS_STORE");
    }
    check_ttl(store, found, wanted.ttl);
    return wanted.action == token_action::forget
               ? forget_token(store, wanted)
               : give_token(store, wanted, found, desk, interrupted);
}

}  // namespace dibs::cli
