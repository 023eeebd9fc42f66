// SPDX-License-Identifier: Apache-2.0
#pragma once
// The outer form of a store's URL: scheme, the part that the store understands, and options.
// Servers' URLs with user, password and hosts are taken apart by their stores.

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace dibs::store {

struct url {
    std::string scheme;  ///< lower case, without the colon
    std::string rest;    ///< between scheme and question mark, percent-decoded
    std::map<std::string, std::string> options;  ///< percent-decoded
};

/// Empty when it is no URL: `fault` then says why.
[[nodiscard]] std::optional<url> parse_url(std::string_view text, std::string& fault);

/// For whoever put a password into a URL as it is: what follows one of these signs counts as
/// something else then, such as a port.
inline constexpr std::string_view encoding_of_passwords =
    "in a password, / is written %2F, ? %3F, # %23, @ %40 and % %25";

/// Empty when a % is not followed by two hexadecimal digits other than 00.
[[nodiscard]] std::optional<std::string> percent_decoded(std::string_view text);

}  // namespace dibs::store
