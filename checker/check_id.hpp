// SPDX-License-Identifier: Apache-2.0
#pragma once
// The checks by number: C1 to C12.

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dibs_checker {

enum class check_id : std::uint8_t {
    c1 = 1,  ///< grants in the store's time
    c2,      ///< beliefs
    c3,      ///< fences
    c4,      ///< linearizability
    c5,      ///< lost updates
    c6,      ///< deadlines
    c7,      ///< foreign effects
    c8,      ///< orphans
    c9,      ///< wake-ups
    c10,     ///< slots
    c11,     ///< refreshes
    c12      ///< progress
};

inline constexpr std::size_t check_count = 12;

[[nodiscard]] inline std::string name_of(check_id which) {
    return "C" + std::to_string(static_cast<int>(which));
}

[[nodiscard]] inline std::optional<check_id> check_named(std::string_view name) noexcept {
    if (name.size() < 2 || name.front() != 'C' || name[1] == '0') {
        return std::nullopt;
    }
    name.remove_prefix(1);
    unsigned number = 0;
    const auto [end, trouble] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (trouble != std::errc{} || end != name.data() + name.size() || number < 1 ||
        number > check_count) {
        return std::nullopt;
    }
    return static_cast<check_id>(number);
}

/// Whether an unbounded fault can lift what the check promises.
[[nodiscard]] constexpr bool may_be_excused(check_id which) noexcept {
    return which <= check_id::c3;
}

/// The bit of a check in `excuses`.
[[nodiscard]] constexpr std::int64_t excuse_bit(check_id which) noexcept {
    return std::int64_t{1} << static_cast<unsigned>(which);
}

}  // namespace dibs_checker
