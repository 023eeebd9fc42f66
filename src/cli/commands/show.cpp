// SPDX-License-Identifier: Apache-2.0
// dibs show: all that the store knows of one key.
#include "cli/options/command_support.hpp"
#include "cli/options/duration.hpp"
#include "cli/output/json.hpp"
#include "cli/output/speech.hpp"
#include "cli/settings/identity.hpp"
#include "client/operator/diagnosis.hpp"
#include "core/key.hpp"

#include <dibs/options.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace dibs::cli {

namespace {

constexpr std::array options{
    json_option,
    store_option,
    key_option,
    quiet_option,
    help_option,
};

const command_syntax syntax{
    .name = "show",
    .usage = "dibs show [OPTIONS] KEY",
    .summary =
        "Tells all that the store knows of KEY: who holds it, since when and for how long, who "
        "waits, which\n"
        "result is kept, whether it is on hold, and whom the store excludes.",
    .options = options,
    .operands_max = 1,
    .first_operand = "key",
    .notes =
        "exit status: 0, also for a key that nobody ever held; 64 usage; 69 store not "
        "reachable; 78 configuration.",
    .examples = "  dibs show nightly-report\n  dibs show nightly-report --json",
};

constexpr std::size_t value_bytes_max = 200;

std::string line(std::string_view name, const std::string& value) {
    constexpr std::size_t column = 12;
    std::string text(name);
    text.resize(std::max(column, text.size() + 1), ' ');
    return text + value + "\n";
}

std::string fences(const dibs::holder& who) {
    const auto first = std::to_string(who.fence);
    return who.fence == who.fence_last ? first : first + " to " + std::to_string(who.fence_last);
}

std::string when_ago(std::chrono::microseconds age) {
    const auto now = std::chrono::system_clock::now();
    return show_instant(now - std::chrono::duration_cast<std::chrono::system_clock::duration>(age));
}

std::string about_stranger(const dibs::holder& who) {
    const auto left = describe_time_left(who);
    const bool for_ever = !ends_by_time(who);
    return line("holder", "another program: a lock of its own making, without a fence") +
           line("  left", for_ever ? left + ": it has no ttl" : left) +
           line(
               "  ends",
               for_ever ? "by that program alone: never by time" : "by that program, or by expiry");
}

std::string about_holder(const dibs::holder& who,
                         const dibs::record& of,
                         bool you,
                         bool death_is_noticed) {
    if (is_stranger(who)) {
        return about_stranger(who);
    }
    const auto left = describe_time_left(who);
    const bool for_ever = !ends_by_time(who);
    return line("holder",
                core::printable(who.host) + ", pid " + std::to_string(who.pid) + ", user " +
                    core::printable(who.user) + (you ? " (you)" : "")) +
           (who.command.empty() ? "" : line("  command", core::printable(who.command))) +
           line("  since", when_ago(who.held_for) + " (" + show_duration(who.held_for) + ")") +
           line("  left", for_ever ? left : left + " unless it is renewed") +
           line("  fence", fences(who)) +
           (of.capacity == 1 ? "" : line("  share", describe_share(who.weight, of.capacity))) +
           line("  ends",
                for_ever           ? "with its session in the database, never by time"
                : !who.attached    ? "by expiry or release alone (detached)"
                : death_is_noticed ? "with its process, or by expiry"
                                   : "by expiry or release: this store does not notice a death");
}

std::string about_shares(const dibs::record& record) {
    std::uint64_t taken = 0;
    for (const auto& who : record.holders) {
        taken += who.weight;
    }
    return record.capacity == mode::unlimited
               ? line("shared", "by " + std::to_string(record.holders.size()) + " readers")
               : line("permits",
                      std::to_string(taken) + " of " + std::to_string(record.capacity) + " taken");
}

std::string about_queue(const dibs::record& record) {
    std::string text = line("queue", std::to_string(record.queued) + ", in this order:");
    std::size_t position = 0;
    for (const auto& who : record.queue) {
        text +=
            line("  " + std::to_string(++position) + ".",
                 core::printable(who.host) + ", pid " + std::to_string(who.pid) + ", user " +
                     core::printable(who.user) + ", waits for " + show_duration(who.waiting_for) +
                     (who.command.empty() ? "" : ": " + core::printable(who.command)));
    }
    return record.queued > position ? text + line("  ...", "and further ones") : text;
}

std::string about_result(const dibs::result& kept) {
    const std::string kind = kept.is_mark ? "mark" : "result";
    std::string shown = core::printable(kept.value, value_bytes_max);
    return line(kind, shown) + line("  by fence", std::to_string(kept.fence)) +
           line("  written", when_ago(kept.age) + " (" + show_duration(kept.age) + " ago)") +
           line("  fresh", kept.fresh ? "yes: nobody may acquire the key" : "no");
}

std::string about_refusals(std::uint64_t count) {
    return line("refused",
                count == 0   ? "no write and no claim, by the guard"
                : count == 1 ? "1 write or claim, by the guard"
                             : std::to_string(count) + " writes and claims at most, by the guard");
}

std::string as_text(const dibs::record& record,
                    const dibs::store_info& store,
                    std::optional<std::uint64_t> refused) {
    std::string text = line("key", core::printable(record.key));
    for (const auto& who : record.holders) {
        text += about_holder(who, record, is_you(who, record.key), store.notices_death);
    }
    if (record.capacity != 1 && !record.holders.empty()) {
        text += about_shares(record);
    }
    if (record.holders.empty()) {
        text += line("holder", "nobody");
    }
    if (record.blocked_for.count() > 0) {
        text += line("on hold", describe_hold(record.blocked_reason, record.blocked_for));
    }
    text += line("waiters", std::to_string(record.waiters));
    if (record.queued > 0) {
        text += about_queue(record);
    }
    text += line(
        "last fence",
        record.fence == 0 ? "none: the store knows of no grant" : std::to_string(record.fence));
    if (record.kept) {
        text += about_result(*record.kept);
    }
    if (refused) {
        text += about_refusals(*refused);
    }
    return text + line("store", store.location + " (excludes: " + store.scope + ")");
}

}  // namespace

const command_syntax& show_syntax() {
    return syntax;
}

int show_command(const global_options& global, words given) {
    const auto found = parse_arguments(syntax, given);
    if (helped(syntax, found)) {
        return exit_status::ok;
    }
    const auto key = key_given(syntax, found);
    auto store = use_store(global, found, "dibs show", store_use::existing);
    const auto record = look_at(store, key);
    const auto info = store.through.store();
    const auto refused = detail::refused_writes(store.through, key);
    std::string text;
    if (found.has("json")) {
        const bool you = std::any_of(record.holders.begin(),
                                     record.holders.end(),
                                     [&](const auto& who) { return is_you(who, key); });
        json_object more{{"held_by_you", you}, {"store", store.shown}, {"scope", info.scope}};
        if (refused) {
            more.emplace_back("refused_at_most", *refused);
        }
        text = record_json(record, more) + "\n";
    } else {
        text = as_text(record, info, refused);
    }
    deliver(text);
    return exit_status::ok;
}

}  // namespace dibs::cli
