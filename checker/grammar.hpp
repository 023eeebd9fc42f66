// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which words a history knows, and which fields go with which op.

#include "checker/event.hpp"

#include <array>
#include <limits>
#include <optional>
#include <string_view>

namespace dibs_checker {

enum class field_type : std::uint8_t {
    integer,  ///< from its smallest value on
    boolean,
    text,
    word,   ///< a text that may not be empty
    value,  ///< text, integer or null
    value_array,
    check_array
};

struct field_rule {
    std::string_view name;
    field_type type = field_type::integer;
    std::int64_t smallest = 0;
};

struct event_rule {
    field_set required = 0;
    field_set allowed = 0;  ///< contains what is required
};

inline constexpr std::int64_t largest_time = std::int64_t{1} << 61;  // 73 years; wall clocks fit
inline constexpr std::int64_t any_time = -largest_time;

/// In the order of `field`.
inline constexpr std::array<field_rule, field_count> fields{{
    {"seq", field_type::integer, 0},
    {"sim_ns", field_type::integer, 0},
    {"op", field_type::word, 0},
    {"ph", field_type::word, 0},
    {"proc", field_type::word, 0},
    {"node", field_type::word, 0},
    {"local_ns", field_type::integer, any_time},
    {"note", field_type::text, 0},
    {"call", field_type::integer, 0},
    {"key", field_type::word, 0},
    {"ttl_ns", field_type::integer, 0},
    {"waits", field_type::boolean, 0},
    {"weight", field_type::integer, 1},
    {"capacity", field_type::integer, 1},
    {"fence", field_type::integer, 0},
    {"fence_last", field_type::integer, 0},
    {"sent_local_ns", field_type::integer, any_time},
    {"deadline_local_ns", field_type::integer, any_time},
    {"handed_on", field_type::boolean, 0},
    {"error", field_type::text, 0},
    {"value", field_type::value, 0},
    {"values", field_type::value_array, 0},
    {"amount", field_type::integer, 1},
    {"generation", field_type::integer, 0},
    {"new_generation", field_type::integer, 0},
    {"held", field_type::boolean, 0},
    {"holder", field_type::word, 0},
    {"new_holder", field_type::word, 0},
    {"store", field_type::text, 0},
    {"store_ns", field_type::integer, any_time},
    {"store_expires_ns", field_type::integer, any_time},
    {"sent_sim_ns", field_type::integer, 0},
    {"why", field_type::word, 0},
    {"verb", field_type::word, 0},
    {"answer", field_type::word, 0},
    {"policy", field_type::word, 0},
    {"attempts", field_type::integer, 0},
    {"must_complete", field_type::boolean, 0},
    {"name", field_type::word, 0},
    {"id", field_type::integer, 0},
    {"excuses", field_type::check_array, 0},
    {"format", field_type::integer, 1},
    {"wake_bound_ns", field_type::integer, 0},
    {"poll_bound_ns", field_type::integer, 0},
    {"progress_bound_ns", field_type::integer, 0},
    {"margin_ppm", field_type::integer, 0},
    {"margin_ns", field_type::integer, 0},
    {"grace", field_type::boolean, 0},
}};

[[nodiscard]] constexpr const field_rule& rule_of(field which) noexcept {
    return fields[static_cast<std::size_t>(which)];
}
/// So that sums and differences of what is read stay within 64 bits.
[[nodiscard]] constexpr std::int64_t largest_of(field which) noexcept {
    switch (which) {
        case field::margin_ppm:
            return 1'000'000;
        case field::weight:
        case field::capacity:
        case field::amount:
            return std::int64_t{1} << 32;
        default:
            break;
    }
    return rule_of(which).name.ends_with("_ns") ? largest_time
                                                : std::numeric_limits<std::int64_t>::max();
}
inline constexpr auto largest_values = [] {
    std::array<std::int64_t, field_count> made{};
    for (std::size_t index = 0; index < field_count; ++index) {
        made[index] = largest_of(static_cast<field>(index));
    }
    return made;
}();
/// Constant where the name is, so that who writes events pays nothing for names.
[[nodiscard]] constexpr std::optional<field> field_named(std::string_view name) noexcept {
    for (std::size_t index = 0; index < fields.size(); ++index) {
        if (fields[index].name == name) {
            return static_cast<field>(index);
        }
    }
    return std::nullopt;
}

/// In the order of `op`.
inline constexpr std::array<std::string_view, static_cast<std::size_t>(op::count_of_ops)> ops{
    "acquire", "adopt",   "renew",     "release", "hand_over", "write",   "claim", "read",
    "add",     "members", "increment", "count",   "job",       "refresh", "held",  "lost",
    "wake",    "try",     "settled",   "clock",   "grant",     "prolong", "end",   "refuse",
    "block",   "stored",  "plan",      "slot",    "keep",      "fault",   "heal",  "over"};

[[nodiscard]] std::string_view name_of(op what) noexcept;
[[nodiscard]] constexpr std::optional<op> op_named(std::string_view name) noexcept {
    for (std::size_t index = 0; index < ops.size(); ++index) {
        if (ops[index] == name) {
            return static_cast<op>(index);
        }
    }
    return std::nullopt;
}

/// Empty for phase::none.
[[nodiscard]] std::string_view name_of(phase ph) noexcept;
[[nodiscard]] std::optional<phase> phase_named(std::string_view name) noexcept;

/// Nothing when this op has no such phase.
[[nodiscard]] const std::optional<event_rule>& rule_of(op what, phase ph) noexcept;

}  // namespace dibs_checker
