// SPDX-License-Identifier: Apache-2.0
#include "cli/output/json.hpp"

#include "cli/output/speech.hpp"
#include "cli/output/status_report.hpp"

#include <dibs/options.hpp>

#include <nlohmann/json.hpp>

#include <array>
#include <cstdio>
#include <ctime>

namespace dibs::cli {

namespace {

using json = nlohmann::ordered_json;

/// Holders may have written anything into the store; a listing must not fail for broken UTF-8.
std::string dump(const json& value, int indent) {
    return value.dump(indent, ' ', false, json::error_handler_t::replace);
}

std::int64_t whole_ms(std::chrono::microseconds length) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(length).count();
}

json holder_json(const dibs::holder& who) {
    return {{"host", who.host},
            {"pid", who.pid},
            {"user", who.user},
            {"command", who.command},
            {"fence", who.fence},
            {"fence_last", who.fence_last},
            {"weight", who.weight},
            {"held_for_ms", whole_ms(who.held_for)},
            {"remaining_ms", ends_by_time(who) ? json(whole_ms(who.remaining)) : json(nullptr)},
            {"attached", who.attached}};
}

json queued_json(const dibs::queued_caller& who) {
    return {{"host", who.host},
            {"pid", who.pid},
            {"user", who.user},
            {"command", who.command},
            {"waiting_for_ms", whole_ms(who.waiting_for)}};
}

json fields_of(const dibs::record& record) {
    json shown{{"key", record.key}, {"fence", record.fence}};
    shown["holders"] = json::array();
    for (const auto& who : record.holders) {
        shown["holders"].push_back(holder_json(who));
    }
    shown["capacity"] = record.capacity == mode::unlimited ? json(nullptr) : json(record.capacity);
    shown["waiters"] = record.waiters;
    shown["queued"] = record.queued;
    shown["queue"] = json::array();
    for (const auto& who : record.queue) {
        shown["queue"].push_back(queued_json(who));
    }
    shown["result"] = nullptr;
    if (record.kept) {
        shown["result"] = {{"value", record.kept->value},
                           {"fence", record.kept->fence},
                           {"mark", record.kept->is_mark},
                           {"fresh", record.kept->fresh},
                           {"age_ms", whole_ms(record.kept->age)}};
    }
    shown["blocked_for_ms"] = whole_ms(record.blocked_for);
    shown["blocked_reason"] = record.blocked_reason;
    return shown;
}

json whole(const json_object& fields) {
    auto shown = json::object();
    for (const auto& [name, value] : fields) {
        std::visit([&shown, &name = name](const auto& what) { shown[name] = what; }, value);
    }
    return shown;
}

}  // namespace

std::string show_instant(std::chrono::system_clock::time_point when) {
    const auto since = when.time_since_epoch();
    const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(since - seconds).count();
    const auto stamp = static_cast<std::time_t>(seconds.count());
    std::tm parts{};
    ::gmtime_r(&stamp, &parts);
    std::array<char, 32> text{};
    const auto length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
    std::array<char, 8> fraction{};
    std::snprintf(fraction.data(), fraction.size(), ".%03dZ", static_cast<int>(ms % 1000));
    return std::string(text.data(), length) + fraction.data();
}

std::string to_json(const status_report& report) {
    json shown{{"outcome", report.outcome}, {"status", report.status}, {"key", report.key}};
    shown["fence"] = report.fence != 0 ? json(report.fence) : json(nullptr);
    if (!report.also.empty()) {
        shown["also"] = json::array();
        for (const auto& [key, fence] : report.also) {
            shown["also"].push_back({{"key", key}, {"fence", fence}});
        }
    }
    shown["started"] = show_instant(report.started);
    shown["ended"] = show_instant(report.ended);
    shown["holder"] = report.holder ? holder_json(*report.holder) : json(nullptr);
    shown["store"] = report.store;
    shown["message"] = report.message;
    return dump(shown, 2);
}

std::string to_json(const std::vector<std::pair<std::string, std::string>>& fields) {
    auto shown = json::object();
    for (const auto& [name, value] : fields) {
        shown[name] = value;
    }
    return dump(shown, 2);
}

std::string text_field(const std::string& object, const std::string& name) {
    const auto read = json::parse(object, nullptr, false);
    return read.is_object() && read.contains(name) && read[name].is_string()
               ? read[name].get<std::string>()
               : std::string{};
}

std::string object_json(const json_object& fields, json_layout layout) {
    return dump(whole(fields), layout == json_layout::one_line ? -1 : 2);
}

std::string list_json(const std::vector<json_object>& objects) {
    auto shown = json::array();
    for (const auto& one : objects) {
        shown.push_back(whole(one));
    }
    return dump(shown, 2);
}

std::string record_json(const dibs::record& record, const json_object& more) {
    auto shown = fields_of(record);
    shown.update(whole(more));
    return dump(shown, 2);
}

}  // namespace dibs::cli
