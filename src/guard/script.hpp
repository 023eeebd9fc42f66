// SPDX-License-Identifier: Apache-2.0
#pragma once
// The SQL of the data layer, as `dibs guard sql` prints it.

#include <string>
#include <string_view>

namespace dibs::guard {

inline constexpr int script_version = 3;

/// For this schema. Requires: is_schema_name(schema).
[[nodiscard]] std::string script(std::string_view schema, int version = script_version);

/// As SQL names it: it may be a word that SQL has for itself.
[[nodiscard]] std::string quoted_schema(std::string_view schema);

/// Small letters, digits and underscores.
[[nodiscard]] constexpr bool is_schema_name(std::string_view name) noexcept {
    if (name.empty() || name.size() > 63 || (name[0] >= '0' && name[0] <= '9')) {
        return false;
    }
    for (const char one : name) {
        if (!((one >= 'a' && one <= 'z') || (one >= '0' && one <= '9') || one == '_')) {
            return false;
        }
    }
    return !name.starts_with("pg_");
}

}  // namespace dibs::guard
