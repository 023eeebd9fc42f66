// SPDX-License-Identifier: Apache-2.0
#pragma once
// What machines read. One file, because the JSON library takes long to compile.

#include <dibs/info.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace dibs::cli {

struct status_report;

[[nodiscard]] std::string to_json(const status_report& report);
/// An object of texts, in this order.
[[nodiscard]] std::string to_json(const std::vector<std::pair<std::string, std::string>>& fields);

/// A field of an object in JSON text that is itself a text; empty when there is none.
[[nodiscard]] std::string text_field(const std::string& object, const std::string& name);

using json_value =
    std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, double, std::string>;
/// Fields in the order in which they are told.
using json_object = std::vector<std::pair<std::string, json_value>>;

enum class json_layout { pretty, one_line };
[[nodiscard]] std::string object_json(const json_object& fields,
                                      json_layout layout = json_layout::pretty);
[[nodiscard]] std::string list_json(const std::vector<json_object>& objects);
/// The record as in a listing, and further fields.
[[nodiscard]] std::string record_json(const dibs::record& record, const json_object& more);

/// `2026-11-29T23:59:59.123Z`
[[nodiscard]] std::string show_instant(std::chrono::system_clock::time_point when);

}  // namespace dibs::cli
