// SPDX-License-Identifier: Apache-2.0
#include "recipes/headed_text.hpp"

#include <cstdint>
#include <utility>

namespace dibs::recipes {

using json = nlohmann::ordered_json;

std::optional<headed_text> headed_text_of(std::string_view text,
                                          std::string_view kind,
                                          int format) {
    const auto end = text.find('\n');
    if (end == std::string_view::npos) {
        return std::nullopt;
    }
    auto head = json::parse(text.substr(0, end), nullptr, false);
    if (!head.is_object() || head.value("kind", json()) != json(kind) || !head.contains("v") ||
        !head["v"].is_number_integer()) {
        return std::nullopt;
    }
    const bool newer = head["v"].get<std::int64_t>() > format;
    return headed_text{std::move(head), text.substr(end + 1), newer};
}

std::string head_alone(std::string text, std::string_view kind) {
    if (headed_text_of(text, kind, 0)) {
        text.resize(text.find('\n') + 1);
    }
    return text;
}

std::string with_head(const json& head, std::string_view kind, int format, std::string_view rest) {
    json first{{"v", format}, {"kind", kind}};
    first.update(head);
    return first.dump(-1, ' ', false, json::error_handler_t::replace) + '\n' + std::string(rest);
}

}  // namespace dibs::recipes
