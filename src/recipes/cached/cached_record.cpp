// SPDX-License-Identifier: Apache-2.0
#include "recipes/cached/cached_record.hpp"

#include "recipes/headed_text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

namespace dibs::recipes {

using core::microseconds;

namespace {

using json = nlohmann::ordered_json;

constexpr int format = 1;
constexpr std::string_view kind = "cached value";
constexpr std::array all_states{cached_state::good,
                                cached_state::fetching,
                                cached_state::failing,
                                cached_state::refused};

json span_to_json(microseconds span) {
    return span == cached_record::unlimited ? json(nullptr) : json(span.count());
}

microseconds span_of(const json& shown) {
    return shown.is_null() ? cached_record::unlimited
                           : microseconds{std::max<std::int64_t>(shown.get<std::int64_t>(), 0)};
}

/// What the secrets are sealed for: they open for this key and generation alone. Framed by length, so that no two are
/// alike.
std::string bound_to(std::string_view key, const cached_record& record) {
    return std::to_string(key.size()) + ':' + std::string(key) + '#' +
           std::to_string(record.generation);
}

std::optional<headed_text> split(std::string_view text, cached_fault& fault) {
    auto found = headed_text_of(text, kind, format);
    fault = !found         ? cached_fault::not_ours
            : found->newer ? cached_fault::newer
                           : cached_fault::none;
    return fault == cached_fault::none ? std::move(found) : std::nullopt;
}

cached_record outline(const json& head) {
    cached_record made;
    const std::string state = head.at("state");
    const auto known = std::find_if(
        all_states.begin(), all_states.end(), [&](auto one) { return name_of(one) == state; });
    if (known == all_states.end()) {
        throw json::other_error::create(599, "state", nullptr);
    }
    made.state = *known;
    made.generation = head.at("generation");
    made.value_fence = head.at("value_fence");
    made.life = span_of(head.at("life_us"));
    made.pause = span_of(head.at("pause_us"));
    made.failures = head.at("failures");
    made.trouble = head.at("trouble");
    made.host = head.at("host");
    made.pid = head.at("pid");
    made.written_ms = head.at("written");
    return made;
}

}  // namespace

std::string_view name_of(cached_state state) noexcept {
    switch (state) {
        case cached_state::good:
            return "good";
        case cached_state::fetching:
            return "fetching";
        case cached_state::failing:
            return "failing";
        case cached_state::refused:
            return "refused";
    }
    return "";
}

std::string to_text(const cached_record& record, std::string_view key, sealer* seal) {
    json head{{"state", name_of(record.state)},
              {"generation", record.generation},
              {"value_fence", record.value_fence},
              {"life_us", span_to_json(record.life)},
              {"pause_us", span_to_json(record.pause)},
              {"failures", record.failures},
              {"trouble", record.trouble},
              {"host", record.host},
              {"pid", record.pid},
              {"written", record.written_ms},
              {"value_bytes", record.value.size()}};
    auto secrets = record.value + record.successor;
    if (seal != nullptr) {
        head["sealed_by"] = seal->key_name();
        secrets = seal->seal(secrets, bound_to(key, record));
    }
    return with_head(head, kind, format, secrets);
}

std::optional<cached_record> cached_outline_of(std::string_view text, cached_fault& fault) {
    const auto found = split(text, fault);
    if (!found) {
        return std::nullopt;
    }
    try {
        return outline(found->head);
    } catch (const json::exception&) {
        fault = cached_fault::not_ours;
        return std::nullopt;
    }
}

std::optional<cached_record> cached_record_of(std::string_view text,
                                              std::string_view key,
                                              sealer* seal,
                                              cached_fault& fault) {
    const auto found = split(text, fault);
    if (!found) {
        return std::nullopt;
    }
    try {
        auto made = outline(found->head);
        std::string opened;
        auto secrets = found->rest;
        if (found->head.contains("sealed_by")) {
            const std::string by = found->head.at("sealed_by");
            auto plain =
                seal == nullptr ? std::nullopt : seal->open(by, secrets, bound_to(key, made));
            if (!plain) {
                fault = cached_fault::sealed;
                return std::nullopt;
            }
            opened = std::move(*plain);
            secrets = opened;
        }
        const auto length = found->head.at("value_bytes").get<std::size_t>();
        if (length > secrets.size()) {
            fault = cached_fault::not_ours;
            return std::nullopt;
        }
        made.value = secrets.substr(0, length);
        made.successor = secrets.substr(length);
        return made;
    } catch (const json::exception&) {
        fault = cached_fault::not_ours;
        return std::nullopt;
    }
}

std::string without_secrets(std::string text) {
    return head_alone(std::move(text), kind);
}

cached_record aged(cached_record record, microseconds later) noexcept {
    const auto shorten = [&](microseconds& span) {
        if (span != cached_record::unlimited) {
            span = std::max(microseconds::zero(), span - later);
        }
    };
    shorten(record.life);
    shorten(record.pause);
    return record;
}

}  // namespace dibs::recipes
