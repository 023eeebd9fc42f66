// SPDX-License-Identifier: Apache-2.0
#include "checker/grammar.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <limits>
#include <unordered_map>

namespace dibs_checker {
namespace {

constexpr std::int64_t largest_time = std::int64_t{1} << 61;  // 73 years; wall clocks fit
constexpr std::int64_t any_time = -largest_time;

// In the order of `field`.
constexpr std::array<field_rule, field_count> fields{{
    {"seq", field_type::integer, 0, 0},
    {"sim_ns", field_type::integer, 0, 0},
    {"op", field_type::word, 0, 0},
    {"ph", field_type::word, 0, 0},
    {"proc", field_type::word, 0, 0},
    {"node", field_type::word, 0, 0},
    {"local_ns", field_type::integer, any_time, 0},
    {"note", field_type::text, 0, 0},
    {"call", field_type::integer, 0, 0},
    {"key", field_type::word, 0, 0},
    {"ttl_ns", field_type::integer, 0, 0},
    {"waits", field_type::boolean, 0, 0},
    {"weight", field_type::integer, 1, 1},
    {"capacity", field_type::integer, 1, 1},
    {"fence", field_type::integer, 0, 0},
    {"fence_last", field_type::integer, 0, 0},
    {"sent_local_ns", field_type::integer, any_time, 0},
    {"deadline_local_ns", field_type::integer, any_time, 0},
    {"handed_on", field_type::boolean, 0, 0},
    {"error", field_type::text, 0, 0},
    {"value", field_type::value, 0, null_value},
    {"values", field_type::value_array, 0, 0},
    {"amount", field_type::integer, 1, 1},
    {"generation", field_type::integer, 0, 0},
    {"new_generation", field_type::integer, 0, 0},
    {"held", field_type::boolean, 0, 0},
    {"holder", field_type::word, 0, 0},
    {"new_holder", field_type::word, 0, 0},
    {"store", field_type::text, 0, 0},
    {"store_ns", field_type::integer, any_time, 0},
    {"store_expires_ns", field_type::integer, any_time, 0},
    {"sent_sim_ns", field_type::integer, 0, 0},
    {"why", field_type::word, 0, 0},
    {"verb", field_type::word, 0, 0},
    {"answer", field_type::word, 0, 0},
    {"policy", field_type::word, 0, 0},
    {"attempts", field_type::integer, 0, 0},
    {"must_complete", field_type::boolean, 0, 0},
    {"name", field_type::word, 0, 0},
    {"id", field_type::integer, 0, 0},
    {"excuses", field_type::check_array, 0, 0},
    {"format", field_type::integer, 1, 0},
    {"wake_bound_ns", field_type::integer, 0, 0},
    {"poll_bound_ns", field_type::integer, 0, 0},
    {"progress_bound_ns", field_type::integer, 0, 0},
    {"margin_ppm", field_type::integer, 0, 10'000},
    {"margin_ns", field_type::integer, 0, 2'000'000},
    {"grace", field_type::boolean, 0, 0},
}};

// In the order of `op`.
constexpr std::array<std::string_view, static_cast<std::size_t>(op::count_of_ops)> ops{
    "acquire", "adopt",   "renew",     "release", "hand_over", "write",   "claim", "read",
    "add",     "members", "increment", "count",   "job",       "refresh", "held",  "lost",
    "wake",    "try",     "settled",   "clock",   "grant",     "prolong", "end",   "refuse",
    "stored",  "plan",    "slot",      "keep",    "fault",     "heal",    "over"};

// In the order of `phase`.
constexpr std::array<std::string_view, 8>
    phases{"", "inv", "ok", "fail", "info", "begin", "end", "at"};

constexpr field_set set_of(std::initializer_list<field> members) {
    field_set all = 0;
    for (const field member : members) {
        all |= one(member);
    }
    return all;
}

using enum field;

constexpr auto everywhere = set_of({seq, sim_ns, field::op, ph, proc, node, local_ns, note});
constexpr auto always = set_of({seq, sim_ns, field::op});

constexpr event_rule rule(std::initializer_list<field> required,
                          std::initializer_list<field> optional = {}) {
    const auto needed = always | set_of(required);
    return {needed, everywhere | needed | set_of(optional)};
}

// Fields of a call that every one of its events has, besides those of the arguments.
constexpr event_rule call_rule(std::initializer_list<field> required,
                               std::initializer_list<field> optional = {}) {
    auto made = rule(required, optional);
    const auto common = set_of({ph, proc, call, key});
    made.required |= common;
    made.allowed |= common;
    return made;
}

constexpr event_rule step_rule(std::initializer_list<field> required,
                               std::initializer_list<field> optional = {}) {
    auto made = rule(required, optional);
    made.required |= set_of({store_ns, key});
    made.allowed |= set_of({store_ns, key, store});
    return made;
}

constexpr std::optional<event_rule> inv_rule(enum op what) {
    switch (what) {
        case op::acquire:
            return call_rule({ttl_ns}, {waits, weight, capacity});
        case op::adopt:
            return call_rule({ttl_ns});
        case op::renew:
            return call_rule({fence, ttl_ns, sent_local_ns});
        case op::release:
        case op::hand_over:
        case op::claim:
        case op::job:
            return call_rule({fence});
        case op::write:
            return call_rule({value}, {fence});
        case op::read:
        case op::members:
        case op::count:
            return call_rule({}, {fence});
        case op::add:
            return call_rule({value}, {fence});
        case op::increment:
            return call_rule({}, {amount, fence});
        case op::refresh:
            return call_rule({generation, fence});
        default:
            return std::nullopt;
    }
}

// An end may repeat what its beginning said; assemble.cpp compares.
constexpr std::optional<event_rule> ok_rule(enum op what) {
    switch (what) {
        case op::acquire:
        case op::adopt:
            return call_rule({local_ns, fence},
                             {fence_last,
                              ttl_ns,
                              sent_local_ns,
                              deadline_local_ns,
                              handed_on,
                              weight,
                              capacity,
                              waits});
        case op::renew:
            return call_rule({local_ns},
                             {deadline_local_ns, fence_last, fence, ttl_ns, sent_local_ns});
        case op::release:
        case op::hand_over:
        case op::claim:
        case op::job:
            return call_rule({}, {fence});
        case op::write:
            return call_rule({}, {fence, value});
        case op::read:
            return call_rule({value}, {fence});
        case op::add:
            return call_rule({}, {fence, value});
        case op::members:
            return call_rule({values}, {fence});
        case op::increment:
            return call_rule({}, {fence, amount});
        case op::count:
            return call_rule({value}, {fence});
        case op::refresh:
            return call_rule({new_generation}, {generation, fence});
        default:
            return std::nullopt;
    }
}

constexpr std::optional<event_rule> point_rule(enum op what) {
    switch (what) {
        case op::held:
            return rule({proc, local_ns, key, fence, held});
        case op::lost:
            return rule({proc, local_ns, key, fence});
        case op::wake:
        case op::tried:
            return rule({proc, key});
        case op::settled:
            return rule({proc, key, holder});
        case op::clock:
            return rule({}, {store, store_ns});
        case op::grant:
            return step_rule({holder, fence, ttl_ns, store_expires_ns},
                             {fence_last, weight, capacity});
        case op::prolong:
            return step_rule({holder, fence, ttl_ns, store_expires_ns},
                             {fence_last, new_holder, sent_sim_ns, why});
        case op::end:
            return step_rule({why, fence}, {holder});
        case op::refuse:
            return step_rule({holder, verb, answer});
        case op::stored:
            return step_rule({}, {holder, fence, store_expires_ns});
        case op::plan:
            return rule(
                {format},
                {wake_bound_ns, poll_bound_ns, progress_bound_ns, margin_ppm, margin_ns, grace});
        case op::slot:
            return rule({key, policy}, {attempts, must_complete});
        case op::keep:
            return rule({key, generation, fence});
        case op::heal:
        case op::over:
            return rule({});
        default:
            return std::nullopt;
    }
}

constexpr std::optional<event_rule> make_rule(enum op what, phase phase_of) {
    if (what == op::fault) {
        switch (phase_of) {
            case phase::begin:
                return rule({ph, name, id}, {excuses});
            case phase::end:
                return rule({ph, name, id});
            case phase::at:
                return rule({ph, name}, {excuses});
            default:
                return std::nullopt;
        }
    }
    switch (phase_of) {
        case phase::none: {
            auto made = point_rule(what);
            if (made) {
                made->allowed &= ~one(ph);
            }
            return made;
        }
        case phase::inv:
            return inv_rule(what);
        case phase::ok:
            return ok_rule(what);
        case phase::fail:
        case phase::info: {
            // What was asked may be repeated; the answer is an error at most.
            auto made = inv_rule(what);
            if (made) {
                made->required = call_rule({}).required;
                made->allowed |= one(error);
            }
            return made;
        }
        default:
            return std::nullopt;
    }
}

template <std::size_t Size>
constexpr std::optional<std::size_t> index_of(const std::array<std::string_view, Size>& names,
                                              std::string_view name) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
        return std::nullopt;
    }
    return static_cast<std::size_t>(found - names.begin());
}

}  // namespace

const field_rule& rule_of(field which) noexcept {
    return fields[static_cast<std::size_t>(which)];
}

std::int64_t largest_of(field which) noexcept {
    switch (which) {
        case margin_ppm:
            return 1'000'000;
        case weight:
        case capacity:
        case amount:
            return std::int64_t{1} << 32;
        default:
            break;
    }
    return rule_of(which).name.ends_with("_ns") ? largest_time
                                                : std::numeric_limits<std::int64_t>::max();
}

std::optional<field> field_named(std::string_view name) {
    static const auto by_name = [] {
        std::unordered_map<std::string_view, field> made;
        for (std::size_t index = 0; index < fields.size(); ++index) {
            made.emplace(fields[index].name, static_cast<field>(index));
        }
        return made;
    }();
    const auto found = by_name.find(name);
    return found == by_name.end() ? std::nullopt : std::optional{found->second};
}

std::string_view name_of(enum op what) noexcept {
    return ops[static_cast<std::size_t>(what)];
}

std::optional<enum op> op_named(std::string_view name) noexcept {
    const auto found = index_of(ops, name);
    return found ? std::optional{static_cast<enum op>(*found)} : std::nullopt;
}

std::string_view name_of(phase which) noexcept {
    return phases[static_cast<std::size_t>(which)];
}

std::optional<phase> phase_named(std::string_view name) noexcept {
    const auto found = index_of(phases, name);
    return found && *found != 0 ? std::optional{static_cast<phase>(*found)} : std::nullopt;
}

const std::optional<event_rule>& rule_of(enum op what, phase phase_of) {
    static const auto table = [] {
        std::array<std::array<std::optional<event_rule>, phases.size()>, ops.size()> made;
        for (std::size_t row = 0; row < ops.size(); ++row) {
            for (std::size_t column = 0; column < phases.size(); ++column) {
                made[row][column] =
                    make_rule(static_cast<enum op>(row), static_cast<phase>(column));
            }
        }
        return made;
    }();
    return table[static_cast<std::size_t>(what)][static_cast<std::size_t>(phase_of)];
}

}  // namespace dibs_checker
