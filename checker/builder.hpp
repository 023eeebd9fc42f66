// SPDX-License-Identifier: Apache-2.0
#pragma once
// Makes a history event by event, whether its lines are read or the events come from the run
// itself. It is as strict as the reader, which is made of it: what cannot be is refused.

#include "checker/grammar.hpp"
#include "checker/history.hpp"

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace dibs_checker {

/// The history cannot be read; `what()` names the line.
class bad_history : public std::runtime_error {
  public:
    bad_history(std::uint32_t line, const std::string& why)
        : std::runtime_error("line " + std::to_string(line) + ": " + why), line_(line) {}
    [[nodiscard]] std::uint32_t line() const noexcept { return line_; }

  private:
    std::uint32_t line_;
};

/// An event is begun, gets its op and its fields in any order, and is ended. Each step tells whether
/// it made sense; after one that did not, `complaint()` says why, and the event is not kept.
///
/// Thread safety: none.
class history_builder {
  public:
    void begin(std::uint32_t line) {
        made_.events.emplace_back().line = line;
        complaint_.clear();
        in_array_ = false;
    }
    void kind(op what, phase ph) noexcept {
        now().what = what;
        now().ph = ph;
        now().present |= one(field::op) | (ph == phase::none ? 0 : one(field::ph));
    }
    /// A field and its value.
    bool number(field which, std::int64_t value) {
        const auto& rule = rule_of(which);
        if (rule.type == field_type::integer && value >= rule.smallest &&
            value <= largest_values[static_cast<std::size_t>(which)] && !now().has(which)) {
            now().tell(which, value);
            return true;
        }
        return field_begins(which) && number(value);
    }
    /// The values that follow are of this field.
    bool field_begins(field which);
    bool number(std::int64_t value);
    bool boolean(bool value);
    bool text(std::string_view value);
    bool null();
    bool array_begins();
    void array_ends() noexcept { in_array_ = false; }
    [[nodiscard]] field current() const noexcept { return current_; }
    // For those who find by themselves that something cannot be.
    bool wrong_type();
    bool out_of_range();
    bool complain(std::string why);

    /// Keeps the event, unless something of it cannot be.
    bool end();

    [[nodiscard]] const std::string& complaint() const noexcept { return complaint_; }

    /// The events that have ended.
    [[nodiscard]] const history& so_far() const noexcept { return made_; }
    /// Their order was not looked at, nor were ends joined: that is for `assemble`.
    [[nodiscard]] history take() noexcept { return std::move(made_); }

  private:
    [[nodiscard]] event& now() noexcept { return made_.events.back(); }
    [[nodiscard]] field_type type() const noexcept { return rule_of(current_).type; }
    [[nodiscard]] std::string name() const { return std::string{rule_of(current_).name}; }
    [[nodiscard]] std::string misfit(const std::optional<event_rule>& rule);
    [[nodiscard]] bool fits();
    bool take_value(std::string_view text);
    bool take_excuse(std::string_view text);

    history made_;
    std::string complaint_;
    field current_ = field::seq;
    bool in_array_ = false;
};

/// Joins the ends of calls and faults, and refuses orders of events that cannot be. Errors:
/// bad_history.
void assemble(history& what);

}  // namespace dibs_checker
