// SPDX-License-Identifier: Apache-2.0
#include "checker/event_text.hpp"

#include "checker/check_id.hpp"
#include "checker/grammar.hpp"
#include "checker/words.hpp"

namespace dibs_checker {
namespace {

std::string array_text(const history& all, const std::vector<std::int64_t>& values) {
    std::string made = "[";
    for (const auto value : values) {
        if (made.size() > 1) {
            made += ", ";
        }
        made += all.value_text(value);
    }
    return made + "]";
}

std::string excuses_text(std::int64_t bits) {
    std::string made;
    for (std::size_t number = 1; number <= check_count; ++number) {
        const auto which = static_cast<check_id>(number);
        if ((bits & excuse_bit(which)) != 0) {
            made += made.empty() ? "" : ",";
            made += name_of(which);
        }
    }
    return made;
}

std::string value_of(const history& all, const event& of, field which, bool is_time) {
    switch (rule_of(which).type) {
        case field_type::integer:
            return is_time ? time_text(of[which]) : std::to_string(of[which]);
        case field_type::boolean:
            return of[which] != 0 ? "true" : "false";
        case field_type::text:
        case field_type::word:
            return quoted(all.text(of, which));
        case field_type::value:
            return all.value_text(of[which]);
        case field_type::value_array:
            return array_text(all, all.arrays[static_cast<std::size_t>(of[which])]);
        case field_type::check_array:
            return excuses_text(of[which]);
    }
    return {};
}

}  // namespace

std::string event_name(const event& of) {
    std::string made{name_of(of.what)};
    if (of.ph != phase::none) {
        made += " ";
        made += name_of(of.ph);
    }
    return made;
}

std::string event_fields(const history& all, const event& of) {
    constexpr auto told_apart =
        one(field::seq) | one(field::sim_ns) | one(field::op) | one(field::ph);
    constexpr std::string_view time_ending = "_ns";
    std::string made;
    for (std::size_t index = 0; index < field_count; ++index) {
        const auto which = static_cast<field>(index);
        if (!of.has(which) || (told_apart & one(which)) != 0) {
            continue;
        }
        auto name = rule_of(which).name;
        const bool is_time = name.ends_with(time_ending);
        if (is_time) {
            name.remove_suffix(time_ending.size());
        }
        made += made.empty() ? "" : " ";
        made += name;
        made += "=" + value_of(all, of, which, is_time);
    }
    return made;
}

}  // namespace dibs_checker
