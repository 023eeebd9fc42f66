// SPDX-License-Identifier: Apache-2.0
#include "cli/once/once_outlook.hpp"

#include "cli/once/slot_words.hpp"
#include "cli/output/exit_status.hpp"
#include "cli/output/failure.hpp"
#include "cli/output/speech.hpp"
#include "cli/settings/store_access.hpp"
#include "client/recipes/slot_plan.hpp"
#include "recipes/once/slot_memory.hpp"
#include "recipes/once/slot_record.hpp"

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
    const bool counts = kept && !options.terms.again;
    if (counts && (recipes::is_final(*kept) || options.terms.at_most_once)) {
        const auto state =
            kept->state == recipes::slot_state::done ? slot_verdict::done : slot_verdict::failed;
        return {false, describe_slot(key, state, kept)};
    }
    if (counts && detail::back_off_left(*kept, std::chrono::floor<milliseconds>(record.kept->age)) >
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

namespace {

/// A record that cannot be read is a failure.
std::optional<dibs::record> record_of(client& through, const std::string& key) {
    try {
        return through.inspect(key);
    } catch (const dibs::error& fault) {
        throw failure(status_of(fault.code()), fault.what());
    }
}

outlook look_at(client& through, const once_options& options) {
    const auto& terms = options.terms;
    const auto record = record_of(through, options.run.key);
    auto found = look_ahead(options, record.value_or(dibs::record{}));
    if (found.would_run && terms.begin_ms && !terms.again && (!record || !record->kept)) {
        const auto horizon = record_of(through, recipes::key_of_horizon(terms.job));
        if (horizon && horizon->kept &&
            recipes::may_be_forgotten(horizon->kept->value, terms.slot, *terms.begin_ms)) {
            found = {false, describe_slot(options.run.key, slot_verdict::forgotten, std::nullopt)};
        }
    }
    if (found.would_run) {
        const auto of_job = record_of(through, terms.job);
        if (of_job && of_job->blocked_for.count() > 0) {
            found = {false,
                     quoted_key(terms.job) + " is on hold " +
                         describe_hold(of_job->blocked_reason, of_job->blocked_for)};
        }
    }
    if (found.would_run && terms.in_turn) {
        const auto turn = record_of(through, recipes::key_of_turn(terms.job));
        if (turn && !turn->holders.empty()) {
            found = {false,
                     describe_slot(options.run.key, slot_verdict::overlaps, std::nullopt) +
                         ", by " + describe_holder(turn->holders.front())};
        }
    }
    return found;
}

/// The slot of now, if it is not planned; else what --missed makes of it.
recipes::due_slots due_now(client& through, const once_options& options) {
    recipes::due_slots due;
    if (options.planned) {
        std::error_code error;
        std::string message;
        const detail::slot_plan plan{options.planned->plan,
                                     options.planned->bounds,
                                     options.terms.at_most_once,
                                     options.due};
        due = detail::due_slots(through, options.terms.job, plan, error, message);
        if (error) {
            throw failure(status_of(error), message);
        }
    }
    return due;
}

}  // namespace

int look_only(const once_options& options, const store_choice& store) {
    auto through = open_client(store, "dibs once");
    const auto due = due_now(through, options);
    auto first = options;
    outlook found{false, quoted_key(options.run.key) + ": its time was missed (--missed none)"};
    if (!options.planned) {
        found = look_at(through, first);
    }
    for (const auto& one : due.slots) {
        first = for_slot(options, one);
        found = look_at(through, first);
        if (found.would_run) {
            break;
        }
    }
    if (options.condition) {
        if (options.run.verbose) {
            say(found.why);
        }
        return found.would_run ? 0 : 1;
    }
    std::string text = "slot        " + first.terms.slot + "\n";
    if (first.planned) {
        const auto shown = [](core::wall_instant at) {
            return instant_text(
                std::chrono::duration_cast<milliseconds>(at.time_since_epoch()).count());
        };
        text += "from        " + shown(first.planned->bounds.begin) + "\n";
        text += "until       " + shown(first.planned->bounds.end) + "\n";
    }
    text += std::string("would run   ") + (found.would_run ? "yes" : "no") + "\n";
    text += "because     " + found.why + "\n";
    if (due.slots.size() > 1) {
        text += "in all      " + std::to_string(due.slots.size()) + " slots, the last " +
                due.slots.back().name + "\n";
    }
    if (due.left_out > 0) {
        text += "left out    " + std::to_string(due.left_out) + "\n";
    }
    deliver(text);
    return exit_status::ok;
}

}  // namespace dibs::cli
