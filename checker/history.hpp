// SPDX-License-Identifier: Apache-2.0
#pragma once
// A history that was read: its events in order, the two ends of each call joined.

#include "checker/event.hpp"
#include "checker/text_pool.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace dibs_checker {

/// Immutable once read. Thread safety: none needed then.
struct history {
    std::vector<event> events;  ///< the plan first
    text_pool texts;
    std::vector<std::vector<std::int64_t>> arrays;  ///< values of sets, as ids of texts

    [[nodiscard]] const event& plan() const { return events.front(); }
    /// The true time of the last event.
    [[nodiscard]] std::int64_t end_ns() const { return events.back().sim(); }
    [[nodiscard]] const std::string& text(const event& of, field which) const {
        return texts.text(of[which]);
    }
    /// The end of a call; nullptr when it has none.
    [[nodiscard]] const event* end_of(const event& inv) const {
        return inv.partner == nowhere ? nullptr : &events[inv.partner];
    }
    [[nodiscard]] position where(const event& which) const {
        return static_cast<position>(&which - events.data());
    }
    /// A register's value as it stood in the history.
    [[nodiscard]] std::string value_text(std::int64_t value) const {
        return value == null_value ? "null" : texts.text(value);
    }
};

}  // namespace dibs_checker
