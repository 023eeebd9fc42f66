// SPDX-License-Identifier: Apache-2.0
// dibs runs: what became of the slots of a job, and which jobs there are.
#include "cli/commands.hpp"
#include "cli/once/slot_words.hpp"
#include "cli/options/common_options.hpp"
#include "cli/options/duration.hpp"
#include "cli/options/option_table.hpp"
#include "cli/output/failure.hpp"
#include "cli/output/json.hpp"
#include "cli/output/speech.hpp"
#include "cli/settings/store_access.hpp"
#include "client/operator/listing.hpp"
#include "core/key.hpp"
#include "recipes/once/slot_record.hpp"

#include <dibs/dibs.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace dibs::cli {

namespace {

using recipes::slot_record;
using recipes::slot_state;
using std::chrono::milliseconds;

constexpr std::array options{
    option{"output", 0, "", "with JOB: also what dibs once --keep-output kept of each run"},
    common::json,
    common::store,
    common::quiet,
    common::help};

struct run_row {
    slot_record kept;
    bool held = false;
    std::vector<slot_record> skips;
};

/// What is known of a job.
struct job_row {
    run_row last;  ///< the one that was started last
    std::size_t slots = 0;
};

/// What is kept in a record of a slot or of a skip; empty for every other record.
std::optional<slot_record> slot_in(const dibs::record& record) {
    bool newer = false;
    return record.kept ? recipes::slot_record_of(record.kept->value, newer) : std::nullopt;
}

/// In the words of whoever asks how it went.
std::string outcome_of(const run_row& run) {
    switch (run.kept.state) {
        case slot_state::done:
            return "done";
        case slot_state::failed:
            if (run.kept.lost) {
                return run.kept.next_at_ms != 0 ? "lost, to be retried" : "lost";
            }
            return run.kept.next_at_ms != 0 ? "failed, to be retried" : "failed";
        case slot_state::started:
            return run.held ? "running" : "never ended";
        case slot_state::interrupted:
            return "interrupted";
        case slot_state::skipped:
            break;
    }
    return "skipped";
}

/// In the order in which they were started.
std::vector<run_row> runs_of(const std::string& job, const std::vector<dibs::record>& records) {
    std::map<std::string, run_row> by_slot;
    for (const auto& record : records) {
        const auto kept = slot_in(record);
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

void add_to_jobs(std::map<std::string, job_row>& jobs, const dibs::record& record) {
    auto kept = slot_in(record);
    if (!kept || kept->state == slot_state::skipped) {
        return;
    }
    auto& job = jobs[kept->job];
    ++job.slots;
    if (job.slots == 1 || kept->started_ms >= job.last.kept.started_ms) {
        job.last = {std::move(*kept), !record.holders.empty(), {}};
    }
}

using json = nlohmann::ordered_json;

json moment(std::int64_t at) {
    return at != 0 ? json(instant_text(at)) : json(nullptr);
}

json as_json(const run_row& run) {
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
    one["output"] = kept.output.empty() ? json(nullptr) : json(kept.output);
    return one;
}

std::string text_of(const json& shown) {
    return shown.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string as_json(const std::map<std::string, job_row>& jobs) {
    auto shown = json::array();
    for (const auto& [name, job] : jobs) {
        auto one = as_json(job.last);
        one["slots"] = job.slots;
        shown.push_back(std::move(one));
    }
    return text_of(shown);
}

std::string as_json(const std::vector<run_row>& runs) {
    auto shown = json::array();
    for (const auto& run : runs) {
        auto one = as_json(run);
        one["skipped_by"] = json::array();
        for (const auto& skip : run.skips) {
            one["skipped_by"].push_back(
                {{"host", skip.host}, {"pid", skip.pid}, {"at", moment(skip.started_ms)}});
        }
        shown.push_back(std::move(one));
    }
    return text_of(shown);
}

using row = std::array<std::string, 8>;

std::string took(const slot_record& kept) {
    return kept.ended_ms != 0 ? show_duration(milliseconds{kept.ended_ms - kept.started_ms}) : "-";
}

std::string where(const slot_record& kept) {
    return core::printable(kept.host) + ":" + std::to_string(kept.pid);
}

std::string status_text(const slot_record& kept) {
    return kept.status ? std::to_string(*kept.status) : "-";
}

std::string as_text(const std::vector<row>& table) {
    row::size_type column = 0;
    std::string text;
    std::array<std::size_t, std::tuple_size_v<row>> widths{};
    for (const auto& line : table) {
        for (column = 0; column < line.size(); ++column) {
            widths[column] = std::max(widths[column], columns_of(line[column]));
        }
    }
    for (const auto& line : table) {
        std::string shown;
        for (column = 0; column < line.size(); ++column) {
            shown += padded(line[column], widths[column] + 2);
        }
        shown.erase(shown.find_last_not_of(' ') + 1);
        text += shown + "\n";
    }
    return text;
}

std::string as_text(const std::map<std::string, job_row>& jobs) {
    std::vector<row> table;
    if (!jobs.empty()) {
        table.push_back(
            {"JOB", "LAST SLOT", "OUTCOME", "STATUS", "HOST", "STARTED", "TOOK", "SLOTS"});
    }
    for (const auto& [name, job] : jobs) {
        const auto& kept = job.last.kept;
        table.push_back({core::printable(name, 60),
                         core::printable(kept.slot, 60),
                         outcome_of(job.last),
                         status_text(kept),
                         where(kept),
                         instant_text(kept.started_ms),
                         took(kept),
                         std::to_string(job.slots)});
    }
    return as_text(table);
}

std::string as_text(const std::vector<run_row>& runs) {
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
                         status_text(kept),
                         std::to_string(kept.attempt),
                         where(kept),
                         instant_text(kept.started_ms),
                         took(kept),
                         skips.empty() ? "-" : skips});
    }
    return as_text(table);
}

/// As the command wrote it, but for what would move a terminal's cursor or change its colours.
std::string printable_lines(std::string text) {
    std::string shown;
    std::replace(text.begin(), text.end(), '\t', ' ');
    for (std::size_t from = 0; from < text.size();) {
        const auto end = std::min(text.find('\n', from), text.size());
        shown += "    " + core::printable(text.substr(from, end - from), end - from + 1) + "\n";
        from = end + 1;
    }
    return shown;
}

std::string outputs_of(const std::vector<run_row>& runs) {
    std::string text;
    for (const auto& run : runs) {
        if (!run.kept.output.empty()) {
            text += "\n" + core::printable(run.kept.slot, 60) + ", attempt " +
                    std::to_string(run.kept.attempt) + ":\n" + printable_lines(run.kept.output);
        }
    }
    return text;
}

}  // namespace

const command_syntax& runs_syntax() {
    static const command_syntax syntax{
        .name = "runs",
        .usage = "dibs runs [OPTIONS] [JOB]",
        .summary =
            "Lists the slots of a job of dibs once: who ran it, when, how long, how it ended, and "
            "who\nskipped. Without JOB: the jobs, each with the slot that was started last.",
        .options = options,
        .operands_max = 1,
        .notes =
            "\"never ended\": its host crashed, or could not tell the store; \"interrupted\": dibs "
            "once was told\n"
            "to end (TERM, INT, HUP) and stopped it. Either runs again when a host fires or waits "
            "for the slot,\n"
            "unless --at-most-once was asked for. \"lost\": it failed, since its lease was lost. "
            "What dibs run did\n"
            "is not kept.\n"
            "\n"
            "exit status: 0, also when nothing is known; 64 usage; 69 store not reachable; "
            "78 configuration.",
        .examples = "  dibs runs\n  dibs runs nightly-report\n  dibs runs nightly-report --json",
    };
    return syntax;
}

int runs_command(const global_options& global, words given) {
    const auto found = parse_arguments(runs_syntax(), given);
    if (found.has("help")) {
        deliver(help_text(runs_syntax()));
        return exit_status::ok;
    }
    const auto job = found.operands.empty() ? std::string{} : found.operands.front();
    if (found.has("output") && found.operands.empty()) {
        throw usage_error("--output goes with a JOB");
    }
    if (const auto fault = core::fault_of_key(job); !found.operands.empty() && !fault.empty()) {
        throw usage_error("JOB: " + fault);
    }
    const auto* flag = found.value("store") != nullptr ? found.value("store") : global.store;
    const auto store = settle_store(
        flag, find_settings(real_surroundings()), found.has("quiet"), store_use::existing);
    auto through = open_client(store, "dibs runs");
    const bool of_all = found.operands.empty();
    std::map<std::string, job_row> jobs;
    std::vector<dibs::record> records;
    const auto take = [&](const dibs::record& record) {
        if (of_all) {
            add_to_jobs(jobs, record);
        } else {
            records.push_back(record);
        }
    };
    std::error_code error;
    std::string message;
    const auto prefix = of_all ? std::string{} : recipes::key_of_slot(job, "");
    if (!detail::for_each_record(through, prefix, take, error, message)) {
        throw failure(status_of(error), message);
    }
    const bool json_wanted = found.has("json");
    const auto runs = runs_of(job, records);
    if (of_all) {
        deliver(json_wanted ? as_json(jobs) : as_text(jobs));
    } else {
        deliver(json_wanted ? as_json(runs)
                            : as_text(runs) + (found.has("output") ? outputs_of(runs) : ""));
    }
    if (jobs.empty() && runs.empty() && !json_wanted && !found.has("quiet")) {
        // It may be another store than the jobs use.
        say_at_terminal("no slot of " + (of_all ? "any job" : quoted_key(job)) + " is known in " +
                        through.store().location + "; only dibs once keeps what it ran");
    }
    return exit_status::ok;
}

}  // namespace dibs::cli
