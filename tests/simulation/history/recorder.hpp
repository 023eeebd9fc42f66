// SPDX-License-Identifier: Apache-2.0
#pragma once
// Writes down what happens, event by event, in the words of docs/internals/history-format.md, as the
// checker takes it: text is made of it only when somebody asks. The text is the run's fingerprint,
// too: two runs are alike when their histories are.

#include "checker/builder.hpp"
#include "core/fence.hpp"
#include "core/holder_id.hpp"
#include "core/time.hpp"
#include "simulation/world/world.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace dibs::simulation {

/// A field by its name in the format, looked up when the program is compiled.
struct field_word {
    consteval field_word(const char* name) : which(dibs_checker::field_named(name).value()) {}
    dibs_checker::field which;
};

/// An op by its name in the format; a literal is looked up when the program is compiled.
struct op_word {
    template <std::size_t Size>
    consteval op_word(const char (&name)[Size]) : which(dibs_checker::op_named(name)) {
        which.value();
    }
    op_word(std::string_view name) : which(dibs_checker::op_named(name)) {}
    std::optional<dibs_checker::op> which;
};

/// What was written down in a run.
struct written_history {
    dibs_checker::history events;
    /// Why the checker cannot take it; empty: it can.
    std::string complaint;

    /// As JSON lines.
    [[nodiscard]] std::string text() const;
};

class recorder {
  public:
    explicit recorder(const world& in) : world_(in) {}

    /// One event, complete when the object goes.
    class line {
      public:
        explicit line(recorder& to) : to_(&to) {}
        line(line&& other) noexcept : to_(std::exchange(other.to_, nullptr)) {}
        line& operator=(line&&) = delete;
        ~line() {
            if (to_ != nullptr) {
                to_->end_line();
            }
        }

        line& text(field_word name, std::string_view value) {
            return say(to_->made_.field_begins(name.which) && to_->made_.text(value));
        }
        line& flag(field_word name, bool value) {
            return say(to_->made_.field_begins(name.which) && to_->made_.boolean(value));
        }
        line& number(field_word name, std::integral auto value) {
            return say(to_->made_.number(name.which, static_cast<std::int64_t>(value)));
        }
        line& time(field_word name, core::nanoseconds value) { return number(name, value.count()); }
        line& time(field_word name, core::instant value) {
            return number(name, value.time_since_epoch().count());
        }
        line& time(field_word name, core::store_instant value) {
            return time(name, core::nanoseconds{value.time_since_epoch()});
        }
        line& holder(field_word name, const core::holder_id& value);
        /// Nothing was written yet.
        line& null(field_word name) {
            return say(to_->made_.field_begins(name.which) && to_->made_.null());
        }
        line& values(field_word name, std::span<const std::int64_t> all);
        /// Names of checks in quotes, with commas between.
        line& checks(field_word name, std::string_view all);

      private:
        line& say(bool understood) {
            if (!understood) {
                to_->complain();
            }
            return *this;
        }
        recorder* to_;
    };

    line event(op_word op, std::string_view phase = {});

    /// Numbers of calls, and of faults.
    [[nodiscard]] std::uint64_t new_id() noexcept { return ++ids_; }

    /// From the event at `first` on, as JSON lines.
    [[nodiscard]] std::string text(std::size_t first = 0) const;
    [[nodiscard]] std::size_t events() const noexcept { return made_.so_far().events.size(); }

    [[nodiscard]] written_history take();

  private:
    void end_line() {
        if (!made_.end()) {
            complain();
        }
    }
    /// Of what cannot be, the first thing counts.
    void complain();

    const world& world_;
    dibs_checker::history_builder made_;
    std::string complaint_;
    std::uint32_t begun_ = 0;
    std::uint64_t ids_ = 0;
};

/// A digest of a history (FNV-1a, 64 bits).
[[nodiscard]] std::uint64_t digest(std::string_view text) noexcept;

}  // namespace dibs::simulation
