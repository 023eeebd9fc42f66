// SPDX-License-Identifier: Apache-2.0
#pragma once
// What machines read. One file, because the JSON library takes long to compile.

#include <dibs/info.hpp>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace dibs::cli {

struct status_report;

[[nodiscard]] std::string to_json(const status_report& report);
[[nodiscard]] std::string to_json(const std::vector<dibs::record>& records);
/// An object of texts, in this order.
[[nodiscard]] std::string to_json(const std::vector<std::pair<std::string, std::string>>& fields);

/// `2026-11-29T23:59:59.123Z`
[[nodiscard]] std::string show_instant(std::chrono::system_clock::time_point when);

}  // namespace dibs::cli
