// SPDX-License-Identifier: Apache-2.0
#pragma once
// Durations as people write and read them: a number and a unit. A number without a unit is refused,
// since 30 has been taken for seconds and for milliseconds too often.

#include <chrono>
#include <string>
#include <string_view>

namespace dibs::core {

/// `500ms`, `30s`, `0.5s`, `5m`, `2h`, `1d`. Nothing else: no sign, blank, exponent or second unit.
/// Errors: std::invalid_argument, whose text says what is wrong ("has no unit; write 30s").
[[nodiscard]] std::chrono::milliseconds parse_duration(std::string_view text);

/// As parse_duration reads it, to the millisecond: `30s`, `1m`, `1500ms`.
[[nodiscard]] std::string write_duration(std::chrono::milliseconds length);

/// Short and readable: `12 s`, `4 min 10 s`, `350 ms`.
[[nodiscard]] std::string show_duration(std::chrono::microseconds length);

}  // namespace dibs::core
