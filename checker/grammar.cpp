// SPDX-License-Identifier: Apache-2.0
#include "checker/grammar.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <initializer_list>

namespace dibs_checker {
namespace {

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
            return call_rule({fence, ttl_ns, sent_local_ns}, {deadline_local_ns});
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
        case op::block:
            return step_rule({store_expires_ns});
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

/// All that an event of this op may have to keep, whatever its phase.
constexpr field_set kept_by(enum op what) {
    field_set all = 0;
    for (std::size_t column = 0; column < phases.size(); ++column) {
        if (const auto made = make_rule(what, static_cast<phase>(column))) {
            all |= made->allowed;
        }
    }
    all |= (all & one(fence)) != 0 ? one(fence_last) : 0;
    return all & ~set_of({field::op, ph});
}

/// Each field gets the first place that no field of the same op has.
constexpr std::array<std::uint8_t, field_count> places_of_fields() {
    std::array<field_set, ops.size()> kept{};
    for (std::size_t row = 0; row < ops.size(); ++row) {
        kept[row] = kept_by(static_cast<enum op>(row));
    }
    std::array<std::uint8_t, field_count> made{};
    for (std::size_t index = 0; index < field_count; ++index) {
        const auto mine = one(static_cast<field>(index));
        std::uint64_t taken = 0;
        for (std::size_t row = 0; row < ops.size(); ++row) {
            for (std::size_t other = 0; (kept[row] & mine) != 0 && other < index; ++other) {
                const bool has = (kept[row] & one(static_cast<field>(other))) != 0;
                taken |= has ? std::uint64_t{1} << made[other] : 0;
            }
        }
        made[index] = static_cast<std::uint8_t>(std::countr_one(taken));
    }
    return made;
}

constexpr auto all_rules = [] {
    std::array<std::array<std::optional<event_rule>, phases.size()>, ops.size()> made;
    for (std::size_t row = 0; row < ops.size(); ++row) {
        for (std::size_t column = 0; column < phases.size(); ++column) {
            made[row][column] = make_rule(static_cast<enum op>(row), static_cast<phase>(column));
        }
    }
    return made;
}();

constexpr auto all_places = places_of_fields();
static_assert(*std::max_element(all_places.begin(), all_places.end()) + 1 == place_count);

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

constinit const std::array<std::uint8_t, field_count> field_places = all_places;

std::string_view name_of(enum op what) noexcept {
    return ops[static_cast<std::size_t>(what)];
}

std::string_view name_of(phase which) noexcept {
    return phases[static_cast<std::size_t>(which)];
}

std::optional<phase> phase_named(std::string_view name) noexcept {
    const auto found = index_of(phases, name);
    return found && *found != 0 ? std::optional{static_cast<phase>(*found)} : std::nullopt;
}

const std::optional<event_rule>& rule_of(enum op what, phase phase_of) noexcept {
    return all_rules[static_cast<std::size_t>(what)][static_cast<std::size_t>(phase_of)];
}

}  // namespace dibs_checker
