// SPDX-License-Identifier: Apache-2.0
#include "recipes/idempotent_record.hpp"

#include "recipes/headed_text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace dibs::recipes {

namespace {

using json = nlohmann::ordered_json;

constexpr int format = 1;
constexpr std::string_view kind = "idempotent";
constexpr std::array all_states{idempotent_state::begun,
                                idempotent_state::done,
                                idempotent_state::failed};

}  // namespace

std::string_view name_of(idempotent_state state) noexcept {
    switch (state) {
        case idempotent_state::begun:
            return "begun";
        case idempotent_state::done:
            return "done";
        case idempotent_state::failed:
            return "failed";
    }
    return "";
}

std::string to_text(const idempotent_record& record) {
    const json head{{"state", name_of(record.state)},
                    {"fingerprint", record.fingerprint},
                    {"attempt", record.attempt},
                    {"at_most_once", record.at_most_once},
                    {"status", record.status},
                    {"host", record.host},
                    {"pid", record.pid},
                    {"written", record.written_ms},
                    {"answer_bytes", record.answer.size()}};
    return with_head(head, kind, format, record.answer);
}

std::optional<idempotent_record> idempotent_record_of(std::string_view text, bool& newer) {
    const auto found = headed_text_of(text, kind, format);
    newer = found && found->newer;
    if (!found || newer) {
        return std::nullopt;
    }
    try {
        const auto& head = found->head;
        idempotent_record made;
        const std::string state = head.at("state");
        const auto known = std::find_if(
            all_states.begin(), all_states.end(), [&](auto one) { return name_of(one) == state; });
        // What was cut short is nothing that could be told as an answer.
        if (known == all_states.end() ||
            head.at("answer_bytes").get<std::size_t>() != found->rest.size()) {
            return std::nullopt;
        }
        made.state = *known;
        made.fingerprint = head.at("fingerprint");
        made.attempt = head.at("attempt");
        made.at_most_once = head.at("at_most_once");
        made.status = head.at("status");
        made.host = head.at("host");
        made.pid = head.at("pid");
        made.written_ms = head.at("written");
        made.answer = found->rest;
        return made;
    } catch (const json::exception&) {
        return std::nullopt;
    }
}

std::string without_answer(std::string text) {
    return head_alone(std::move(text), kind);
}

}  // namespace dibs::recipes
