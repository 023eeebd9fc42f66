// SPDX-License-Identifier: Apache-2.0
#include "core/timing_wheel.hpp"

#include <algorithm>
#include <bit>

namespace dibs::core {

// A timer stands at the level of the highest bit group in which its tick differs from the current
// one. So within a level every occupied slot lies ahead of the current one, and the lowest occupied
// level holds what is due first.

timing_wheel::timing_wheel(instant start) noexcept : start_(start) {}

std::uint64_t timing_wheel::tick_at_or_after(instant due) const noexcept {
    const auto since = (due - start_).count();
    if (since <= 0) {
        return 0;
    }
    const auto whole = static_cast<std::uint64_t>(since / tick_ns);
    return since % tick_ns == 0 ? whole : whole + 1;
}

std::uint64_t timing_wheel::tick_before(instant now) const noexcept {
    const auto since = (now - start_).count();
    return since <= 0 ? 0 : static_cast<std::uint64_t>(since / tick_ns);
}

void timing_wheel::insert(timer& alarm) noexcept {
    const auto tick = std::max(tick_at_or_after(alarm.due()), current_);
    const auto differing = current_ ^ tick;
    const auto highest_bit =
        differing == 0 ? 0U : 63U - static_cast<unsigned>(std::countl_zero(differing));
    const auto level = std::min(highest_bit / slot_bits, levels - 1);
    link(alarm, level, static_cast<unsigned>(tick >> (level * slot_bits)) % slots);
}

void timing_wheel::link(timer& alarm, unsigned level, unsigned slot) noexcept {
    auto*& head = heads_[level][slot];
    alarm.hook() = {.previous = nullptr, .next = head, .slot = level * slots + slot};
    if (head != nullptr) {
        head->hook().previous = &alarm;
    }
    head = &alarm;
    occupied_[level] |= std::uint64_t{1} << slot;
}

void timing_wheel::remove(timer& alarm) noexcept {
    const auto hook = alarm.hook();
    const auto level = hook.slot / slots;
    const auto slot = hook.slot % slots;
    if (hook.previous != nullptr) {
        hook.previous->hook().next = hook.next;
    } else {
        heads_[level][slot] = hook.next;
        if (hook.next == nullptr) {
            occupied_[level] &= ~(std::uint64_t{1} << slot);
        }
    }
    if (hook.next != nullptr) {
        hook.next->hook().previous = hook.previous;
    }
    alarm.hook() = {};
}

std::optional<timing_wheel::position> timing_wheel::first_occupied() const noexcept {
    for (unsigned level = 0; level < levels; ++level) {
        if (occupied_[level] == 0) {
            continue;
        }
        const auto slot = static_cast<unsigned>(std::countr_zero(occupied_[level]));
        const auto shift = level * slot_bits;
        const auto above = shift + slot_bits;
        const auto base = above >= 64 ? 0 : (current_ >> above) << above;
        return position{level, slot, base | (std::uint64_t{slot} << shift)};
    }
    return std::nullopt;
}

timer* timing_wheel::pop_due(instant now) noexcept {
    const auto reached = std::max(tick_before(now), current_);
    while (const auto first = first_occupied()) {
        if (first->tick > reached) {
            break;
        }
        current_ = std::max(current_, first->tick);
        auto* const& head = heads_[first->level][first->slot];
        if (first->level == 0) {
            auto* const due = head;
            remove(*due);
            return due;
        }
        // All of the slot at once: one that stayed behind would wait for those that have come down.
        while (auto* const one = head) {
            remove(*one);
            insert(*one);
        }
    }
    current_ = reached;
    return nullptr;
}

std::optional<instant> timing_wheel::next_wake() const noexcept {
    const auto first = first_occupied();
    if (!first) {
        return std::nullopt;
    }
    const auto tick = std::max(first->tick, current_);
    return start_ + nanoseconds{static_cast<std::int64_t>(tick) * tick_ns};
}

}  // namespace dibs::core
