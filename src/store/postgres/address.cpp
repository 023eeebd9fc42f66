// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/address.hpp"

#include "core/key.hpp"
#include "core/redaction.hpp"
#include "store/remote/strict_options.hpp"
#include "store/url.hpp"

#include <libpq-fe.h>

#include <algorithm>
#include <utility>

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

bool take_numbers(const std::string& value, address& into, std::string& fault) {
    if (value != "sha256" && value != "hashtext") {
        fault = "hash is sha256 or hashtext, not " + core::printable(value);
        return false;
    }
    into.sessions = value == "sha256" ? address::numbers::sha256 : address::numbers::hashtext;
    return true;
}

bool take_create(const std::string& value, address& into, std::string& fault) {
    if (value != "yes" && value != "no") {
        fault = "create is yes or no, not " + core::printable(value);
        return false;
    }
    into.make = value == "yes";
    return true;
}

constexpr std::string_view session_mark = "+advisory";

bool is_ours(std::string_view name, const address& of) noexcept {
    return name == "schema" || name == "prefix" || name == "create" ||
           (of.by_session() ? name == "hash" : remote::strict_options::knows(name));
}

bool take(std::string_view name,
          const std::string& value,
          address& into,
          remote::strict_options& strict,
          std::string& fault) {
    return name == "schema"   ? take_schema(value, into, fault)
           : name == "prefix" ? take_prefix(value, into, fault)
           : name == "create" ? take_create(value, into, fault)
           : name == "hash"   ? take_numbers(value, into, fault)
                              : strict.take(name, value, fault);
}

std::string quoted(std::string_view text, char mark) {
    std::string made{mark};
    for (const char letter : text) {
        made += letter;
        if (letter == mark) {
            made += letter;
        }
    }
    return made + mark;
}

enum class reading { good, not_understood, odd_port };

/// How libpq takes it apart. Its words about it may quote the URL, password and all, and those about
/// a port that is no number the password alone, if somebody did not encode it.
reading as_libpq_reads(const std::string& uri) {
    char* told = nullptr;
    auto* options = ::PQconninfoParse(uri.c_str(), &told);
    auto found = options == nullptr ? reading::not_understood : reading::good;
    for (auto* one = options; one != nullptr && one->keyword != nullptr; ++one) {
        if (one->val != nullptr && std::string_view{one->keyword} == "port" &&
            std::string_view{one->val}.find_first_not_of("0123456789,") != std::string_view::npos) {
            found = reading::odd_port;
        }
    }
    ::PQconninfoFree(options);
    if (told != nullptr) {
        ::PQfreemem(told);
    }
    return found;
}

}  // namespace

std::string address::quoted_schema() const {
    return quoted(schema, '"');
}

std::string address::schema_literal() const {
    return quoted(schema, '\'');
}

std::optional<address> parse_address(std::string_view text, std::string& fault) {
    address made;
    const auto mark = std::min(text.find('?'), text.size());
    made.uri = text.substr(0, mark);
    // How it is opened says nothing about where it is.
    auto shown = made.uri;
    // libpq knows the two schemes in lower case alone.
    const auto colon = std::min(made.uri.find(':'), made.uri.size());
    std::transform(made.uri.begin(),
                   made.uri.begin() + static_cast<std::ptrdiff_t>(colon),
                   made.uri.begin(),
                   [](char letter) {
                       return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32)
                                                             : letter;
                   });
    if (const auto mode = made.uri.find(session_mark); mode < colon) {
        made.uri.erase(mode, session_mark.size());
        made.sessions = address::numbers::sha256;
    }
    if (!made.uri.substr(std::min(made.uri.find(':'), made.uri.size())).starts_with("://")) {
        fault = "write postgres://host/database";
        return std::nullopt;
    }
    auto options = mark < text.size() ? text.substr(mark + 1) : std::string_view{};
    remote::strict_options strict;
    char before = '?';
    char shown_before = '?';
    while (!options.empty()) {
        const auto end = std::min(options.find('&'), options.size());
        const auto option = options.substr(0, end);
        options.remove_prefix(std::min(end + 1, options.size()));
        const auto equals = std::min(option.find('='), option.size());
        const auto name = option.substr(0, equals);
        if (name != "create") {
            shown += std::exchange(shown_before, '&');
            shown += option;
        }
        if (!is_ours(name, made)) {
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
        if (!take(name, *value, made, strict, fault)) {
            return std::nullopt;
        }
    }
    const auto longest_ttl = strict.longest_ttl(fault);
    if (!longest_ttl) {
        return std::nullopt;
    }
    made.longest_ttl = *longest_ttl;
    made.shown = core::printable(core::redacted_url(shown), 500);
    const auto read = as_libpq_reads(made.uri);
    if (read == reading::odd_port) {
        fault = "the port is a number; " + std::string{encoding_of_passwords};
        return std::nullopt;
    }
    if (read == reading::not_understood) {
        fault = "libpq does not understand it: beside " +
                std::string{made.by_session() ? "schema, prefix, create and hash"
                                              : "schema, prefix, create, guarantee and max_ttl"} +
                ", which are options of dibs, there may be what libpq knows alone, such as sslmode "
                "or connect_timeout, each encoded as a URL asks for";
        return std::nullopt;
    }
    return made;
}

}  // namespace dibs::store::postgres
