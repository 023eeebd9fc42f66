// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/address.hpp"

#include "core/key.hpp"
#include "core/redaction.hpp"
#include "store/url.hpp"

#include <libpq-fe.h>

#include <algorithm>
#include <memory>

namespace dibs::store::postgres {

namespace {

constexpr std::size_t schema_bytes_max = 63;
constexpr std::size_t prefix_bytes_max = 256;

/// False: `fault` says why.
bool take_schema(const std::string& value, address& into, std::string& fault) {
    if (value.empty() || value.size() > schema_bytes_max || value.starts_with("pg_") ||
        value == "information_schema" || !core::fault_of_key(value).empty()) {
        fault = "schema is a name of up to 63 bytes that does not begin with pg_, not " +
                core::printable(value);
        return false;
    }
    into.schema = value;
    return true;
}

bool take_prefix(const std::string& value, address& into, std::string& fault) {
    if (value.size() > prefix_bytes_max || (!value.empty() && !core::fault_of_key(value).empty())) {
        fault =
            "prefix is the beginning of a key of up to 256 bytes, not " + core::printable(value);
        return false;
    }
    into.prefix = value;
    return true;
}

/// What libpq has against it; empty: nothing. Its words may quote the URL, password and all.
bool libpq_understands(const std::string& uri) {
    char* told = nullptr;
    auto* options = ::PQconninfoParse(uri.c_str(), &told);
    if (options != nullptr) {
        ::PQconninfoFree(options);
    }
    if (told != nullptr) {
        ::PQfreemem(told);
    }
    return options != nullptr;
}

}  // namespace

std::string address::quoted_schema() const {
    std::string quoted = "\"";
    for (const char letter : schema) {
        quoted += letter;
        if (letter == '"') {
            quoted += letter;
        }
    }
    return quoted + '"';
}

std::optional<address> parse_address(std::string_view text, std::string& fault) {
    address made;
    made.shown = core::printable(core::redacted_url(text), 500);
    const auto mark = std::min(text.find('?'), text.size());
    made.uri = text.substr(0, mark);
    // libpq knows the two schemes in lower case alone.
    const auto colon = std::min(made.uri.find(':'), made.uri.size());
    std::transform(made.uri.begin(),
                   made.uri.begin() + static_cast<std::ptrdiff_t>(colon),
                   made.uri.begin(),
                   [](char letter) {
                       return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32)
                                                             : letter;
                   });
    if (!made.uri.substr(colon).starts_with("://")) {
        fault = "write postgres://host/database";
        return std::nullopt;
    }
    auto options = mark < text.size() ? text.substr(mark + 1) : std::string_view{};
    char before = '?';
    while (!options.empty()) {
        const auto end = std::min(options.find('&'), options.size());
        const auto option = options.substr(0, end);
        options.remove_prefix(std::min(end + 1, options.size()));
        const auto equals = std::min(option.find('='), option.size());
        const auto name = option.substr(0, equals);
        if (name != "schema" && name != "prefix") {
            made.uri += before;
            made.uri += option;
            before = '&';
            continue;
        }
        const auto value = percent_decoded(option.substr(std::min(equals + 1, option.size())));
        if (!value) {
            fault = "the option " + std::string{name} + " is not encoded as a URL asks for";
            return std::nullopt;
        }
        if (!(name == "schema" ? take_schema(*value, made, fault)
                               : take_prefix(*value, made, fault))) {
            return std::nullopt;
        }
    }
    if (!libpq_understands(made.uri)) {
        fault =
            "libpq does not understand it: after the options schema and prefix of dibs there may "
            "be what libpq knows alone, such as sslmode or connect_timeout, each encoded as a URL "
            "asks for";
        return std::nullopt;
    }
    return made;
}

}  // namespace dibs::store::postgres
