// SPDX-License-Identifier: Apache-2.0
#pragma once
// One line of a history, as docs/internals/history-format.md describes it. Which field an op may or
// must have is told in grammar.cpp.

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace dibs_checker {

enum class op : std::uint8_t {
    // calls
    acquire,
    adopt,
    renew,
    release,
    hand_over,
    write,
    claim,
    read,
    add,
    members,
    increment,
    count,
    job,
    refresh,
    // what a process notices
    held,
    lost,
    wake,
    tried,
    settled,
    clock,
    // what the store did
    grant,
    prolong,
    end,
    refuse,
    block,
    stored,
    // the world
    plan,
    slot,
    keep,
    fault,
    heal,
    over,
    count_of_ops
};

[[nodiscard]] constexpr bool is_call(op what) noexcept {
    return what <= op::refresh;
}
[[nodiscard]] constexpr bool is_store_step(op what) noexcept {
    return what >= op::grant && what <= op::stored;
}

enum class phase : std::uint8_t { none, inv, ok, fail, info, begin, end, at };

enum class field : std::uint8_t {
    seq,
    sim_ns,
    op,
    ph,
    proc,
    node,
    local_ns,
    note,
    call,
    key,
    ttl_ns,
    waits,
    weight,
    capacity,
    fence,
    fence_last,
    sent_local_ns,
    deadline_local_ns,
    handed_on,
    error,
    value,
    values,
    amount,
    generation,
    new_generation,
    held,
    holder,
    new_holder,
    store,
    store_ns,
    store_expires_ns,
    sent_sim_ns,
    why,
    verb,
    answer,
    policy,
    attempts,
    must_complete,
    name,
    id,
    excuses,
    format,
    wake_bound_ns,
    poll_bound_ns,
    progress_bound_ns,
    margin_ppm,
    margin_ns,
    grace,
    count_of_fields
};

inline constexpr auto field_count = static_cast<std::size_t>(field::count_of_fields);
static_assert(field_count <= 64, "the presence of fields is kept in 64 bits");

using field_set = std::uint64_t;

[[nodiscard]] constexpr field_set one(field which) noexcept {
    return field_set{1} << static_cast<unsigned>(which);
}

/// Where an event stands in its history.
using position = std::uint32_t;
inline constexpr position nowhere = std::numeric_limits<position>::max();

/// Names a text of the history's pool; equal ids are equal texts.
using text_id = std::int64_t;
/// The value `null` of a register: nothing was written yet.
inline constexpr std::int64_t null_value = -1;

/// What counts for a field that is left out.
[[nodiscard]] constexpr std::int64_t absent_value(field which) noexcept {
    switch (which) {
        case field::weight:
        case field::capacity:
        case field::amount:
            return 1;
        case field::value:
            return null_value;
        case field::margin_ppm:
            return 10'000;
        case field::margin_ns:
            return 2'000'000;
        default:
            return 0;
    }
}

/// Where an event keeps the value of a field. Fields of one op never share a place.
inline constexpr std::size_t place_count = 18;
extern const std::array<std::uint8_t, field_count> field_places;

/// Values lie in one short array, since histories are long: numbers and booleans as they are, texts
/// by id, arrays by their index in the history, `excuses` as one bit per check.
struct event {
    std::uint32_t line = 0;
    position partner = nowhere;  ///< calls and faults: the other end
    op what = op::over;
    phase ph = phase::none;
    field_set present = 0;  ///< what its line has
    field_set known = 0;    ///< these, and what the other end of its call has told
    std::array<std::int64_t, place_count> places{};

    [[nodiscard]] std::int64_t operator[](field which) const noexcept {
        return knows(which) ? places[field_places[static_cast<std::size_t>(which)]]
                            : absent_value(which);
    }
    /// Its line has the field.
    void tell(field which, std::int64_t value) noexcept {
        present |= one(which);
        learn(which, value);
    }
    /// Something else tells what its line leaves out.
    void learn(field which, std::int64_t value) noexcept {
        known |= one(which);
        places[field_places[static_cast<std::size_t>(which)]] = value;
    }
    [[nodiscard]] bool knows(field which) const noexcept { return (known & one(which)) != 0; }
    [[nodiscard]] bool has(field which) const noexcept { return (present & one(which)) != 0; }
    [[nodiscard]] std::int64_t sim() const noexcept { return (*this)[field::sim_ns]; }

    [[nodiscard]] bool is_inv(op of) const noexcept { return what == of && ph == phase::inv; }
    [[nodiscard]] bool is_ok(op of) const noexcept { return what == of && ph == phase::ok; }
    [[nodiscard]] bool is_fail(op of) const noexcept { return what == of && ph == phase::fail; }
};

}  // namespace dibs_checker
