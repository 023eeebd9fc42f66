// SPDX-License-Identifier: Apache-2.0
// dibs ls: who holds what.
#include "cli/commands.hpp"
#include "cli/options/duration.hpp"
#include "cli/options/option_table.hpp"
#include "cli/output/failure.hpp"
#include "cli/output/json.hpp"
#include "cli/output/speech.hpp"
#include "cli/settings/store_access.hpp"
#include "client/operator/listing.hpp"
#include "core/key.hpp"

#include <dibs/dibs.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace dibs::cli {

namespace {

constexpr std::array options{
    option{"all", 'a', "", "also keys that nobody holds or waits for"},
    option{"json", 0, "", "for machines"},
    option{"store", 0, "URL", "the store (default: $DIBS_STORE, the settings, an SQLite file)"},
    option{"quiet", 'q', "", "tell nothing but errors"},
    option{"help", 'h', "", "this text"},
};

const command_syntax syntax{
    .name = "ls",
    .usage = "dibs ls [OPTIONS] [PREFIX]",
    .summary = "Lists the keys that begin with PREFIX: who holds them, and how many wait.",
    .options = options,
    .operands_max = 1,
    .notes =
        "exit status: 0, also when nothing is held; 64 usage; 69 store not reachable; 78 "
        "configuration.",
    .examples = "  dibs ls\n  dibs ls invoice: --json",
};

using row = std::array<std::string, 9>;

/// Of most keys it tells nothing; then it is left out.
constexpr std::size_t share_column = 6;

/// A long listing goes out in pieces of about this size.
constexpr std::size_t bytes_kept_back = 1U << 20U;

void add_rows(std::vector<row>& table, const dibs::record& record) {
    const auto key = core::printable(record.key, 60);
    const auto waiters = record.queued > 0 ? std::to_string(record.queued) + " queued"
                                           : std::to_string(record.waiters);
    for (const auto& who : record.holders) {
        if (is_stranger(who)) {
            table.push_back({key,
                             "(another program)",
                             "-",
                             "-",
                             describe_time_left(who),
                             "-",
                             "",
                             waiters,
                             ""});
            continue;
        }
        table.push_back({key,
                         core::printable(who.host) + ":" + std::to_string(who.pid),
                         core::printable(who.user),
                         show_duration(who.held_for),
                         describe_time_left(who),
                         std::to_string(who.fence),
                         describe_share(who.weight, record.capacity),
                         waiters,
                         core::printable(who.command, 60)});
    }
    const bool on_hold = record.blocked_for.count() > 0;
    if (record.holders.empty() || on_hold) {
        table.push_back({key,
                         on_hold ? "(on hold)" : "-",
                         "-",
                         "-",
                         on_hold ? show_duration(record.blocked_for) : "-",
                         record.fence != 0 ? std::to_string(record.fence) : "-",
                         "",
                         waiters,
                         on_hold ? core::printable(record.blocked_reason, 60) : ""});
    }
}

std::string as_text(const std::vector<row>& table) {
    const row title{
        "KEY", "HOLDER", "USER", "HELD FOR", "LEFT", "FENCE", "SHARE", "WAITERS", "COMMAND"};
    const bool shares = std::any_of(
        table.begin(), table.end(), [](const auto& line) { return !line[share_column].empty(); });
    std::array<std::size_t, std::tuple_size_v<row>> widths{};
    const auto widen = [&](const row& line) {
        for (std::size_t column = 0; column < line.size(); ++column) {
            widths[column] = std::max(widths[column], columns_of(line[column]));
        }
    };
    std::string text;
    const auto add = [&](const row& line) {
        for (std::size_t column = 0; column < line.size(); ++column) {
            if (column == share_column && !shares) {
                continue;
            }
            text += padded(line[column], widths[column] + 2);
        }
        text.erase(text.find_last_not_of(' ') + 1);
        text += '\n';
    };
    widen(title);
    std::for_each(table.begin(), table.end(), widen);
    add(title);
    std::for_each(table.begin(), table.end(), add);
    return text;
}

bool is_idle(const dibs::record& record) {
    return record.holders.empty() && record.waiters == 0 && record.queued == 0 &&
           record.blocked_for.count() == 0;
}

/// An empty answer may be that of another store than the jobs use.
std::string nothing_in(const std::string& store, const std::string& prefix) {
    return "no key" + (prefix.empty() ? "" : " that begins with " + quoted_key(prefix)) +
           " is held, waited for or on hold in " + store;
}

}  // namespace

const command_syntax& ls_syntax() {
    return syntax;
}

int ls_command(const global_options& global, words given) {
    const auto found = parse_arguments(syntax, given);
    std::string text;
    if (found.has("help")) {
        text = help_text(syntax);
    } else {
        const auto* flag = found.value("store") != nullptr ? found.value("store") : global.store;
        const auto store = settle_store(
            flag, find_settings(real_surroundings()), found.has("quiet"), store_use::existing);
        if (is_not_made_yet(store)) {
            if (!found.has("quiet")) {
                say_at_terminal(not_made_yet(store));
            }
            deliver(found.has("json") ? "[]\n" : "");
            return exit_status::ok;
        }
        auto through = open_client(store, "dibs ls");
        const bool json = found.has("json");
        std::vector<row> table;
        bool first = true;
        const auto take = [&](const dibs::record& record) {
            if (!found.has("all") && is_idle(record)) {
                return;
            }
            if (json) {
                text += (first ? "[\n" : ",\n") + record_json(record, {});
                first = false;
                if (text.size() > bytes_kept_back) {
                    deliver(std::exchange(text, {}));
                }
            } else {
                add_rows(table, record);
            }
        };
        std::error_code error;
        std::string message;
        const auto prefix = found.operands.empty() ? std::string{} : found.operands.front();
        if (!detail::for_each_record(through, prefix, take, error, message)) {
            throw failure(status_of(error), message);
        }
        if (json) {
            text += first ? "[]\n" : "\n]\n";
        } else if (!table.empty()) {
            text = as_text(table);
        } else if (!found.has("quiet")) {
            say_at_terminal(nothing_in(through.store().location, prefix));
        }
    }
    deliver(text);
    return exit_status::ok;
}

}  // namespace dibs::cli
