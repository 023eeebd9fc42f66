// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where a database is and who we are there: postgres://user@host:port/database?option=value, as
// libpq takes it, with the options of dibs taken out; or postgres+advisory://…. What the URL leaves open comes from libpq's
// environment, service and password files.

#include "core/time.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dibs::store::postgres {

struct address {
    std::string uri;              ///< for libpq
    std::string schema = "dibs";  ///< where the tables are
    std::string prefix;           ///< before every key
    std::string shown;            ///< for people: the password blanked
    bool make = true;             ///< create=no: where there are no tables, none are made
    /// guarantee=strict: no lease is longer, and nothing is granted for as long after a standby was
    /// promoted. 0: not strict.
    core::microseconds longest_ttl{};
    /// How names become the numbers of advisory locks; none: leases are rows.
    enum class numbers : std::uint8_t { none, sha256, hashtext };
    numbers sessions = numbers::none;  ///< postgres+advisory://

    [[nodiscard]] bool by_session() const noexcept { return sessions != numbers::none; }
    /// As an identifier in SQL.
    [[nodiscard]] std::string quoted_schema() const;
    /// As a text in SQL.
    [[nodiscard]] std::string schema_literal() const;
};

/// Empty: `fault` says why. Nothing is connected.
[[nodiscard]] std::optional<address> parse_address(std::string_view text, std::string& fault);

}  // namespace dibs::store::postgres
