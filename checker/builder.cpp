// SPDX-License-Identifier: Apache-2.0
#include "checker/builder.hpp"

#include "checker/check_id.hpp"

#include <array>
#include <bit>
#include <charconv>
#include <utility>

namespace dibs_checker {

bool history_builder::complain(std::string why) {
    complaint_ = std::move(why);
    return false;
}

bool history_builder::wrong_type() {
    return complain("field \"" + name() + "\" has the wrong type");
}

bool history_builder::out_of_range() {
    return complain("field \"" + name() + "\" is out of range");
}

bool history_builder::field_begins(field which) {
    current_ = which;
    if (now().has(which)) {
        return complain("field \"" + name() + "\" occurs twice");
    }
    now().present |= one(which);
    return true;
}

bool history_builder::number(std::int64_t value) {
    if (type() == field_type::value || type() == field_type::value_array) {
        std::array<char, 24> digits{};
        const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
        return take_value({digits.data(), end});
    }
    if (in_array_ || type() != field_type::integer) {
        return wrong_type();
    }
    if (value < rule_of(current_).smallest ||
        value > largest_values[static_cast<std::size_t>(current_)]) {
        return out_of_range();
    }
    now().tell(current_, value);
    return true;
}

bool history_builder::boolean(bool value) {
    if (in_array_ || type() != field_type::boolean) {
        return wrong_type();
    }
    now().tell(current_, value ? 1 : 0);
    return true;
}

bool history_builder::text(std::string_view value) {
    switch (type()) {
        case field_type::value:
        case field_type::value_array:
            // Quoted, so that the text "1" and the number 1 differ.
            return take_value('"' + std::string{value} + '"');
        case field_type::check_array:
            return take_excuse(value);
        case field_type::word:
            if (value.empty()) {
                return complain("field \"" + name() + "\" is empty");
            }
            break;
        case field_type::text:
            break;
        default:
            return wrong_type();
    }
    if (in_array_) {
        return wrong_type();
    }
    now().tell(current_, made_.texts.id_of(value));
    return true;
}

bool history_builder::null() {
    if (in_array_ || type() != field_type::value) {
        return wrong_type();
    }
    now().tell(current_, null_value);
    return true;
}

bool history_builder::array_begins() {
    if (in_array_ || (type() != field_type::value_array && type() != field_type::check_array)) {
        return wrong_type();
    }
    in_array_ = true;
    if (type() == field_type::value_array) {
        now().tell(current_, static_cast<std::int64_t>(made_.arrays.size()));
        made_.arrays.emplace_back();
    }
    return true;
}

bool history_builder::take_value(std::string_view text) {
    if (in_array_ != (type() == field_type::value_array)) {
        return wrong_type();
    }
    const auto id = made_.texts.id_of(text);
    if (in_array_) {
        made_.arrays.back().push_back(id);
    } else {
        now().tell(current_, id);
    }
    return true;
}

bool history_builder::take_excuse(std::string_view text) {
    const auto which = check_named(text);
    if (!in_array_ || !which) {
        return complain("\"" + std::string{text} + "\" is no check");
    }
    if (!may_be_excused(*which)) {
        return complain("no fault excuses " + std::string{text});
    }
    now().tell(current_, now()[current_] | excuse_bit(*which));
    return true;
}

std::string history_builder::misfit(const std::optional<event_rule>& rule) {
    const auto quoted = [](std::string_view word) { return '"' + std::string{word} + '"'; };
    const auto op_word = quoted(name_of(now().what));
    const auto phase_word = quoted(name_of(now().ph));
    if (!rule) {
        return op_word + (now().ph == phase::none ? " needs a ph" : " has no ph " + phase_word);
    }
    if (const auto strange = now().present & ~rule->allowed; strange != 0) {
        return op_word + " has no field " +
               quoted(rule_of(static_cast<field>(std::countr_zero(strange))).name) +
               (now().ph == phase::none ? "" : " at " + phase_word);
    }
    const auto missing = rule->required & ~now().present;
    return "field " + quoted(rule_of(static_cast<field>(std::countr_zero(missing))).name) +
           " is missing";
}

bool history_builder::fits() {
    if (!complaint_.empty()) {
        return false;
    }
    const auto& rule = rule_of(now().what, now().ph);
    if (!rule || (now().present & ~rule->allowed) != 0 || (rule->required & ~now().present) != 0) {
        return complain(misfit(rule));
    }
    return true;
}

bool history_builder::end() {
    if (!fits()) {
        made_.events.pop_back();
        return false;
    }
    if (now().has(field::fence) && !now().has(field::fence_last)) {
        now().learn(field::fence_last, now()[field::fence]);
    }
    return true;
}

}  // namespace dibs_checker
