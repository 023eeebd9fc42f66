// SPDX-License-Identifier: Apache-2.0
// dibs runs: what became of the slots of a job.
#include "cli/commands.hpp"
#include "cli/duration.hpp"
#include "cli/failure.hpp"
#include "cli/json.hpp"
#include "cli/option_table.hpp"
#include "cli/speech.hpp"
#include "cli/store_access.hpp"
#include "core/key.hpp"
#include "recipes/slot_record.hpp"

#include <dibs/dibs.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace dibs::cli {

namespace {

using recipes::slot_record;
using recipes::slot_state;
using std::chrono::milliseconds;

constexpr std::array options{
    option{"json", 0, "", "for machines"},
    option{"store", 0, "URL", "the store (default: $DIBS_STORE, dibs.toml, an SQLite file)"},
    option{"quiet", 'q', "", "tell nothing but errors"},
    option{"help", 'h', "", "this text"},
};

struct run_row {
    slot_record kept;
    bool held = false;
    std::vector<slot_record> skips;
};

std::string instant_text(std::int64_t since_1970_ms) {
    return show_instant(std::chrono::system_clock::time_point{milliseconds{since_1970_ms}});
}

/// In the words of whoever asks how it went.
std::string outcome_of(const run_row& run) {
    switch (run.kept.state) {
        case slot_state::done:
            return "done";
        case slot_state::failed:
            return run.kept.next_at_ms != 0 ? "failed, to be retried" : "failed";
        case slot_state::started:
            return run.held ? "running" : "never ended";
        case slot_state::skipped:
            break;
    }
    return "skipped";
}

/// In the order in which they were started.
std::vector<run_row> runs_of(const std::string& job, const std::vector<dibs::record>& records) {
    std::map<std::string, run_row> by_slot;
    for (const auto& record : records) {
        bool newer = false;
        const auto kept =
            record.kept ? recipes::slot_record_of(record.kept->value, newer) : std::nullopt;
        if (!kept || kept->job != job) {
            continue;
        }
        auto& run = by_slot[kept->slot];
        if (kept->state == slot_state::skipped) {
            run.skips.push_back(*kept);
        } else {
            run.kept = *kept;
            run.held = !record.holders.empty();
        }
    }
    std::vector<run_row> all;
    for (auto& [slot, run] : by_slot) {
        if (run.kept.attempt > 0) {
            all.push_back(std::move(run));
        }
    }
    std::stable_sort(all.begin(), all.end(), [](const run_row& one, const run_row& other) {
        return one.kept.started_ms < other.kept.started_ms;
    });
    return all;
}

std::string as_json(const std::vector<run_row>& runs) {
    using json = nlohmann::ordered_json;
    const auto moment = [](std::int64_t at) {
        return at != 0 ? json(instant_text(at)) : json(nullptr);
    };
    auto shown = json::array();
    for (const auto& run : runs) {
        const auto& kept = run.kept;
        json one{{"job", kept.job}, {"slot", kept.slot}, {"outcome", outcome_of(run)}};
        one["status"] = kept.status ? json(*kept.status) : json(nullptr);
        one["attempt"] = kept.attempt;
        one["failures"] = kept.failures;
        one["host"] = kept.host;
        one["pid"] = kept.pid;
        one["user"] = kept.user;
        one["started"] = moment(kept.started_ms);
        one["ended"] = moment(kept.ended_ms);
        one["took_ms"] = kept.ended_ms != 0 ? json(kept.ended_ms - kept.started_ms) : json(nullptr);
        one["next_at"] = moment(kept.next_at_ms);
        one["skipped_by"] = json::array();
        for (const auto& skip : run.skips) {
            one["skipped_by"].push_back(
                {{"host", skip.host}, {"pid", skip.pid}, {"at", moment(skip.started_ms)}});
        }
        shown.push_back(std::move(one));
    }
    return shown.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string as_text(const std::vector<run_row>& runs) {
    using row = std::array<std::string, 8>;
    std::vector<row> table;
    if (!runs.empty()) {
        table.push_back(
            {"SLOT", "OUTCOME", "STATUS", "ATTEMPT", "HOST", "STARTED", "TOOK", "SKIPPED BY"});
    }
    for (const auto& run : runs) {
        const auto& kept = run.kept;
        std::string skips;
        for (const auto& skip : run.skips) {
            skips += (skips.empty() ? "" : ", ") + core::printable(skip.host);
        }
        table.push_back({core::printable(kept.slot, 60),
                         outcome_of(run),
                         kept.status ? std::to_string(*kept.status) : "-",
                         std::to_string(kept.attempt),
                         core::printable(kept.host) + ":" + std::to_string(kept.pid),
                         instant_text(kept.started_ms),
                         kept.ended_ms != 0
                             ? show_duration(milliseconds{kept.ended_ms - kept.started_ms})
                             : "-",
                         skips.empty() ? "-" : skips});
    }
    row::size_type column = 0;
    std::string text;
    std::array<std::size_t, 8> widths{};
    for (const auto& line : table) {
        for (column = 0; column < line.size(); ++column) {
            widths[column] = std::max(widths[column], line[column].size());
        }
    }
    for (const auto& line : table) {
        std::string shown;
        for (column = 0; column < line.size(); ++column) {
            shown += line[column] + std::string(widths[column] - line[column].size() + 2, ' ');
        }
        shown.erase(shown.find_last_not_of(' ') + 1);
        text += shown + "\n";
    }
    return text;
}

}  // namespace

const command_syntax& runs_syntax() {
    static const command_syntax syntax{
        .name = "runs",
        .usage = "dibs runs [OPTIONS] JOB",
        .summary =
            "Lists the slots of a job of dibs once: who ran it, when, how long, how it ended, and "
            "who skipped.",
        .options = options,
        .operands_max = 1,
        .notes =
            "\"never ended\": its host crashed or lost the lease. It runs again when a host fires "
            "or waits for\n"
            "the slot, unless --at-most-once was asked for. What dibs run did is not kept.\n"
            "\n"
            "exit status: 0, also when nothing is known of JOB; 64 usage; 69 store not reachable; "
            "78 configuration.",
        .examples = "  dibs runs nightly-report\n  dibs runs nightly-report --json",
    };
    return syntax;
}

int runs_command(const global_options& global, words given) {
    const auto found = parse_arguments(runs_syntax(), given);
    if (found.has("help")) {
        deliver(help_text(runs_syntax()));
        return exit_status::ok;
    }
    if (found.operands.empty()) {
        throw usage_error("JOB is missing; see dibs runs --help");
    }
    const auto& job = found.operands.front();
    if (const auto fault = core::fault_of_key(job); !fault.empty()) {
        throw usage_error("JOB: " + fault);
    }
    const auto* flag = found.value("store") != nullptr ? found.value("store") : global.store;
    const auto store = settle_store(
        flag, find_settings(real_surroundings()), found.has("quiet"), store_use::existing);
    auto through = open_client(store, "dibs runs");
    std::vector<dibs::record> records;
    try {
        records = through.list(recipes::key_of_slot(job, ""));
    } catch (const std::system_error& error) {
        throw failure(status_of(error.code()), error.what());
    }
    const auto runs = runs_of(job, records);
    deliver(found.has("json") ? as_json(runs) : as_text(runs));
    return exit_status::ok;
}

}  // namespace dibs::cli
