// SPDX-License-Identifier: Apache-2.0
// dibs ls: who holds what.
#include "cli/commands.hpp"
#include "cli/duration.hpp"
#include "cli/failure.hpp"
#include "cli/json.hpp"
#include "cli/option_table.hpp"
#include "cli/speech.hpp"
#include "cli/store_access.hpp"
#include "core/key.hpp"

#include <dibs/dibs.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace dibs::cli {

namespace {

constexpr std::array options{
    option{"all", 'a', "", "also keys that nobody holds or waits for"},
    option{"json", 0, "", "for machines"},
    option{"store", 0, "URL", "the store (default: $DIBS_STORE, dibs.toml, an SQLite file)"},
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

using row = std::vector<std::string>;

void add_rows(std::vector<row>& table, const dibs::record& record) {
    const auto key = core::printable(record.key, 60);
    const auto waiters = std::to_string(record.waiters);
    for (const auto& who : record.holders) {
        table.push_back({key,
                         core::printable(who.host) + ":" + std::to_string(who.pid),
                         core::printable(who.user),
                         show_duration(who.held_for),
                         show_duration(who.remaining),
                         std::to_string(who.fence),
                         waiters,
                         core::printable(who.command, 60)});
    }
    if (record.holders.empty()) {
        const bool on_hold = record.blocked_for.count() > 0;
        table.push_back({key,
                         on_hold ? "(on hold)" : "-",
                         "-",
                         "-",
                         on_hold ? show_duration(record.blocked_for) : "-",
                         std::to_string(record.fence),
                         waiters,
                         on_hold ? core::printable(record.blocked_reason, 60) : ""});
    }
}

std::string as_text(const std::vector<row>& table) {
    std::vector<std::size_t> widths(table.front().size());
    for (const auto& line : table) {
        for (std::size_t column = 0; column < line.size(); ++column) {
            widths[column] = std::max(widths[column], line[column].size());
        }
    }
    std::string text;
    for (const auto& line : table) {
        std::string shown;
        for (std::size_t column = 0; column < line.size(); ++column) {
            shown += line[column] + std::string(widths[column] - line[column].size() + 2, ' ');
        }
        shown.erase(shown.find_last_not_of(' ') + 1);
        text += shown + "\n";
    }
    return text;
}

bool is_idle(const dibs::record& record) {
    return record.holders.empty() && record.waiters == 0 && record.blocked_for.count() == 0;
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
        const auto store =
            settle_store(flag, find_settings(real_surroundings()), found.has("quiet"));
        auto through = open_client(store, "dibs ls");
        std::vector<dibs::record> records;
        try {
            records = through.list(found.operands.empty() ? std::string{} : found.operands.front());
        } catch (const std::system_error& error) {
            throw failure(status_of(error.code()), error.what());
        }
        if (!found.has("all")) {
            std::erase_if(records, is_idle);
        }
        if (found.has("json")) {
            text = to_json(records) + "\n";
        } else if (!records.empty()) {
            std::vector<row> table{
                {"KEY", "HOLDER", "USER", "HELD FOR", "LEFT", "FENCE", "WAITERS", "COMMAND"}};
            for (const auto& record : records) {
                add_rows(table, record);
            }
            text = as_text(table);
        }
    }
    deliver(text);
    return exit_status::ok;
}

}  // namespace dibs::cli
