// SPDX-License-Identifier: Apache-2.0
#pragma once
// Keeps many timers cheaply: arming and disarming take constant time, whatever the number.
//
// Not for sub-millisecond timing: a timer fires at the first tick (1 ms) at or after its due time,
// never before. Source: G. Varghese and T. Lauck, "Hashed and Hierarchical Timing Wheels" (SOSP
// 1987), scheme 7.
//
// Thread safety: none; it lives on an executor.

#include "core/environment.hpp"

#include <array>
#include <cstdint>
#include <optional>

namespace dibs::core {

class timing_wheel {
  public:
    explicit timing_wheel(instant start) noexcept;
    timing_wheel(const timing_wheel&) = delete;
    timing_wheel& operator=(const timing_wheel&) = delete;

    /// Requires: `alarm` is not in a wheel. Its `due()` was set by timer::mark_armed.
    void insert(timer& alarm) noexcept;

    /// Requires: `alarm` is in this wheel.
    void remove(timer& alarm) noexcept;

    /// Takes out one timer that is due at `now`; nullptr when there is none. `now` never goes back.
    [[nodiscard]] timer* pop_due(instant now) noexcept;

    /// When pop_due should be called next. May be earlier than the first timer's due time, never
    /// later.
    [[nodiscard]] std::optional<instant> next_wake() const noexcept;

  private:
    static constexpr unsigned slot_bits = 6;
    static constexpr unsigned slots = 1U << slot_bits;
    static constexpr unsigned levels = 8;
    static constexpr std::int64_t tick_ns = 1'000'000;

    struct position {
        unsigned level;
        unsigned slot;
        std::uint64_t tick;  ///< at which the slot begins
    };

    [[nodiscard]] std::uint64_t tick_at_or_after(instant due) const noexcept;
    [[nodiscard]] std::uint64_t tick_before(instant now) const noexcept;
    [[nodiscard]] std::optional<position> first_occupied() const noexcept;
    void link(timer& alarm, unsigned level, unsigned slot) noexcept;

    instant start_;
    std::uint64_t current_ = 0;
    std::array<std::uint64_t, levels> occupied_{};
    std::array<std::array<timer*, slots>, levels> heads_{};
};

}  // namespace dibs::core
