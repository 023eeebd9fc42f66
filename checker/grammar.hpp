// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which words a history knows, and which fields go with which op.

#include "checker/event.hpp"

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
    std::int64_t absent = 0;  ///< what counts when it is left out
};

struct event_rule {
    field_set required = 0;
    field_set allowed = 0;  ///< contains what is required
};

[[nodiscard]] const field_rule& rule_of(field which) noexcept;
/// So that sums and differences of what is read stay within 64 bits.
[[nodiscard]] std::int64_t largest_of(field which) noexcept;
[[nodiscard]] std::optional<field> field_named(std::string_view name);

[[nodiscard]] std::string_view name_of(op what) noexcept;
[[nodiscard]] std::optional<op> op_named(std::string_view name) noexcept;

/// Empty for phase::none.
[[nodiscard]] std::string_view name_of(phase ph) noexcept;
[[nodiscard]] std::optional<phase> phase_named(std::string_view name) noexcept;

/// Nothing when this op has no such phase.
[[nodiscard]] const std::optional<event_rule>& rule_of(op what, phase ph);

}  // namespace dibs_checker
