// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where a server is and who we are there: from redis://user:password@host:port/db?option=value,
// rediss:// (by TLS) or redis+unix://user:password@/path/to/socket?db=0.

#include "core/time.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace dibs::store::redis {

/// Files are named by their whole paths: each connection reads them again.
struct tls_settings {
    std::string ca;           ///< of those that are trusted; empty: those of this system
    std::string certificate;  ///< our own, and those above it; empty: none
    std::string key;          ///< of our certificate; empty: in the same file
    std::string server_name;  ///< that the server proves; empty: the host of the URL
};

struct address {
    std::string socket;  ///< path of a unix socket; empty: host and port
    std::string host;
    std::uint16_t port = 6379;
    std::string user;  ///< empty: the default one
    std::string password;
    unsigned database = 0;
    std::string prefix;
    std::string name = "dibs";  ///< of the connections, for CLIENT LIST
    /// guarantee=strict: no lease is longer, and nothing is granted for as long after the server has
    /// begun anew. 0: not strict.
    core::microseconds longest_ttl{};
    std::optional<tls_settings> tls;  ///< empty: in plain

    /// For people: without password.
    [[nodiscard]] std::string shown() const;
};

/// `text` is the URL as it was given; `options` those of it, decoded. Empty: `fault` says why.
[[nodiscard]] std::optional<address> parse_address(
    std::string_view text,
    const std::map<std::string, std::string>& options,
    std::string& fault);

}  // namespace dibs::store::redis
