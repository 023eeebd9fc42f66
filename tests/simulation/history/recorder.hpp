// SPDX-License-Identifier: Apache-2.0
#pragma once
// Writes down what happens, line by line, in the format of docs/internals/history-format.md. The
// text is the run's fingerprint, too: two runs are alike when their histories are.

#include "core/fence.hpp"
#include "core/holder_id.hpp"
#include "core/time.hpp"
#include "simulation/world/world.hpp"

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace dibs::simulation {

class recorder {
  public:
    explicit recorder(const world& in) : world_(in) {}

    /// One event, complete when the object goes.
    class line {
      public:
        explicit line(std::string& to) : to_(&to) {}
        line(line&& other) noexcept : to_(std::exchange(other.to_, nullptr)) {}
        line& operator=(line&&) = delete;
        ~line() {
            if (to_ != nullptr) {
                *to_ += "}\n";
            }
        }

        line& text(std::string_view name, std::string_view value);
        line& flag(std::string_view name, bool value);
        template <typename Number>
        line& number(std::string_view name, Number value) {
            begin(name);
            char digits[24];
            const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
            to_->append(digits, end);
            return *this;
        }
        line& time(std::string_view name, core::nanoseconds value) {
            return number(name, value.count());
        }
        line& time(std::string_view name, core::instant value) {
            return number(name, value.time_since_epoch().count());
        }
        line& time(std::string_view name, core::store_instant value) {
            return time(name, core::nanoseconds{value.time_since_epoch()});
        }
        line& holder(std::string_view name, const core::holder_id& value);
        /// Of text that is JSON already.
        line& raw(std::string_view name, std::string_view json);

      private:
        void begin(std::string_view name);
        std::string* to_;
    };

    line event(std::string_view op);
    line event(std::string_view op, std::string_view phase);

    /// Numbers of calls, and of faults.
    [[nodiscard]] std::uint64_t new_id() noexcept { return ++ids_; }

    [[nodiscard]] const std::string& text() const noexcept { return text_; }
    [[nodiscard]] std::string take_text() noexcept { return std::move(text_); }
    [[nodiscard]] std::uint64_t events() const noexcept { return events_; }

  private:
    const world& world_;
    std::string text_;
    std::uint64_t events_ = 0;
    std::uint64_t ids_ = 0;
};

/// A digest of a history (FNV-1a, 64 bits).
[[nodiscard]] std::uint64_t digest(std::string_view text) noexcept;

}  // namespace dibs::simulation
