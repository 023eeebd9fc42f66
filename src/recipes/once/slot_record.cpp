// SPDX-License-Identifier: Apache-2.0
#include "recipes/once/slot_record.hpp"

#include "core/key.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

namespace dibs::recipes {

namespace {

using json = nlohmann::ordered_json;

constexpr int format = 1;
constexpr std::array all_states{slot_state::started,
                                slot_state::done,
                                slot_state::failed,
                                slot_state::interrupted,
                                slot_state::skipped};

}  // namespace

std::string_view name_of(slot_state state) noexcept {
    switch (state) {
        case slot_state::started:
            return "started";
        case slot_state::done:
            return "done";
        case slot_state::failed:
            return "failed";
        case slot_state::interrupted:
            return "interrupted";
        case slot_state::skipped:
            return "skipped";
    }
    return "";
}

std::chrono::milliseconds back_off_left(const slot_record& record,
                                        std::chrono::milliseconds age,
                                        std::string_view boot,
                                        std::int64_t now_boot_ms) noexcept {
    using std::chrono::milliseconds;
    if (record.state != slot_state::failed || record.next_at_ms == 0) {
        return milliseconds::zero();
    }
    const milliseconds pause{record.next_at_ms - record.ended_ms};
    const bool here = !record.boot.empty() && record.boot == boot;
    const auto passed = here ? milliseconds{now_boot_ms - record.ended_boot_ms} : age;
    return std::max(milliseconds::zero(), std::min(pause - passed, pause));
}

bool is_final(const slot_record& record) noexcept {
    return record.at_most_once || record.state == slot_state::done ||
           (record.state == slot_state::failed && record.next_at_ms == 0);
}

std::string to_text(const slot_record& record) {
    json shown{{"v", format},
               {"job", record.job},
               {"slot", record.slot},
               {"attempt", record.attempt},
               {"failures", record.failures},
               {"state", name_of(record.state)}};
    shown["status"] = record.status ? json(*record.status) : json(nullptr);
    shown["host"] = record.host;
    shown["pid"] = record.pid;
    shown["user"] = record.user;
    shown["started"] = record.started_ms;
    shown["ended"] = record.ended_ms != 0 ? json(record.ended_ms) : json(nullptr);
    shown["next_at"] = record.next_at_ms != 0 ? json(record.next_at_ms) : json(nullptr);
    if (record.begin_ms) {
        shown["begin"] = *record.begin_ms;
    }
    if (!record.boot.empty()) {
        shown["boot"] = record.boot;
        shown["ended_boot"] = record.ended_boot_ms;
    }
    if (record.at_most_once) {
        shown["at_most_once"] = true;
    }
    if (record.lost) {
        shown["lost"] = true;
    }
    if (!record.output.empty()) {
        shown["output"] = record.output;
    }
    return shown.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::optional<slot_record> slot_record_of(std::string_view text, bool& newer) {
    newer = false;
    const auto read = json::parse(text, nullptr, false);
    if (!read.is_object() || !read.contains("v") || !read["v"].is_number_integer()) {
        return std::nullopt;
    }
    if (read["v"].get<std::int64_t>() > format) {
        newer = true;
        return std::nullopt;
    }
    try {
        slot_record made;
        made.job = read.at("job");
        made.slot = read.at("slot");
        made.attempt = read.at("attempt");
        made.failures = read.at("failures");
        const std::string state = read.at("state");
        bool known = false;
        for (const auto one : all_states) {
            if (name_of(one) == state) {
                made.state = one;
                known = true;
            }
        }
        if (!known) {
            return std::nullopt;
        }
        if (!read.at("status").is_null()) {
            made.status = read.at("status").get<int>();
        }
        made.host = read.at("host");
        made.pid = read.at("pid");
        made.user = read.at("user");
        made.started_ms = read.at("started");
        made.ended_ms = read.at("ended").is_null() ? 0 : read.at("ended").get<std::int64_t>();
        made.next_at_ms = read.at("next_at").is_null() ? 0 : read.at("next_at").get<std::int64_t>();
        if (read.contains("begin")) {
            made.begin_ms = read["begin"].get<std::int64_t>();
        }
        if (read.contains("boot")) {
            made.boot = read["boot"];
            made.ended_boot_ms = read.at("ended_boot");
        }
        if (read.contains("at_most_once")) {
            made.at_most_once = read["at_most_once"];
        }
        if (read.contains("lost")) {
            made.lost = read["lost"];
        }
        if (read.contains("output")) {
            made.output = read["output"];
        }
        return made;
    } catch (const json::exception&) {
        return std::nullopt;
    }
}

std::string key_of_slot(std::string_view job, std::string_view slot) {
    return std::string(job) + "@" + std::string(slot);
}

std::string idempotency_key_of(std::string_view job, std::string_view slot) {
    std::string key;
    for (const char one : job) {
        if (one == '/') {
            key += "%2F";
        } else if (one == '%') {
            key += "%25";
        } else {
            key += one;
        }
    }
    return key + "/" + std::string(slot);
}

std::string key_of_skip(std::string_view job, std::string_view slot, std::string_view host) {
    return key_of_slot(job, slot) + "#skip:" + std::string(host);
}

std::string key_of_horizon(std::string_view job) {
    return key_of_slot(job, "") + "#horizon";
}

std::string key_of_turn(std::string_view job) {
    return key_of_slot(job, "") + "#turn";
}

std::string fault_of_slot(std::string_view slot) {
    if (auto fault = core::fault_of_key(slot); !fault.empty()) {
        return "cannot name a slot: " + fault;
    }
    return slot.find_first_of("@#") != std::string_view::npos ? "must not hold @ or #" : "";
}

}  // namespace dibs::recipes
