// SPDX-License-Identifier: Apache-2.0
#include "cli/once_outlook.hpp"

#include "cli/exit_status.hpp"
#include "cli/failure.hpp"
#include "cli/slot_words.hpp"
#include "cli/speech.hpp"
#include "cli/store_access.hpp"
#include "client/attempt.hpp"
#include "recipes/slot_memory.hpp"
#include "recipes/slot_record.hpp"

#include <dibs/dibs.hpp>

#include <chrono>
#include <optional>
#include <string>

namespace dibs::cli {

namespace {

using detail::slot_verdict;
using std::chrono::milliseconds;

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
        return {false,
                quoted_key(key) + " is on hold " +
                    describe_hold(record.blocked_reason, record.blocked_for)};
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
    if (kept && options.terms.at_most_once) {
        return {false, describe_slot(key, slot_verdict::failed, kept)};
    }
    if (kept && detail::back_off_left(*kept, std::chrono::floor<milliseconds>(record.kept->age)) >
                    milliseconds::zero()) {
        return {false, describe_slot(key, slot_verdict::waiting, kept)};
    }
    if (kept) {
        return {true,
                "attempt " + std::to_string(kept->attempt + 1) + "; before that " +
                    std::string(recipes::name_of(kept->state)) + " on " + who_ran(*kept)};
    }
    return {true, "attempt 1"};
}

}  // namespace

int look_only(const once_options& options, const store_choice& store) {
    auto through = open_client(store, "dibs once");
    std::error_code error;
    const auto record = through.inspect(options.run.key, error);
    if (error) {
        throw failure(status_of(error), quoted_key(options.run.key) + ": " + error.message());
    }
    auto found = look_ahead(options, record.value_or(dibs::record{}));
    if (found.would_run && options.terms.begin_ms && (!record || !record->kept)) {
        const auto horizon = through.inspect(recipes::key_of_horizon(options.terms.job), error);
        if (error) {
            throw failure(status_of(error), quoted_key(options.terms.job) + ": " + error.message());
        }
        if (horizon && horizon->kept &&
            recipes::may_be_forgotten(
                horizon->kept->value, options.terms.slot, *options.terms.begin_ms)) {
            found = {false, describe_slot(options.run.key, slot_verdict::forgotten, std::nullopt)};
        }
    }
    if (found.would_run) {
        const auto of_job = through.inspect(options.terms.job, error);
        if (error) {
            throw failure(status_of(error), quoted_key(options.terms.job) + ": " + error.message());
        }
        if (of_job && of_job->blocked_for.count() > 0) {
            found = {false,
                     quoted_key(options.terms.job) + " is on hold " +
                         describe_hold(of_job->blocked_reason, of_job->blocked_for)};
        }
    }
    if (options.condition) {
        if (options.run.verbose) {
            say(found.why);
        }
        return found.would_run ? 0 : 1;
    }
    std::string text = "slot        " + options.terms.slot + "\n";
    if (options.planned) {
        const auto shown = [](core::wall_instant at) {
            return instant_text(
                std::chrono::duration_cast<milliseconds>(at.time_since_epoch()).count());
        };
        text += "from        " + shown(options.planned->bounds.begin) + "\n";
        text += "until       " + shown(options.planned->bounds.end) + "\n";
    }
    text += std::string("would run   ") + (found.would_run ? "yes" : "no") + "\n";
    text += "because     " + found.why + "\n";
    deliver(text);
    return exit_status::ok;
}

}  // namespace dibs::cli
