// SPDX-License-Identifier: Apache-2.0
#include "store/redis/address.hpp"

#include "core/key.hpp"
#include "store/redis/names.hpp"
#include "store/remote/strict_options.hpp"
#include "store/url.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace dibs::store::redis {

namespace {

constexpr std::string_view secured = "rediss";

template <typename Number>
bool parse(std::string_view text, Number& number) noexcept {
    const auto* end = text.data() + text.size();
    const auto [stop, fault] = std::from_chars(text.data(), end, number);
    return fault == std::errc{} && stop == end && !text.empty();
}

bool parse_database(std::string_view text, address& into, std::string& fault) {
    if (!parse(text, into.database) || into.database > 1'000'000) {
        // After an @ that is not where it belongs, it is the rest of a password.
        fault =
            "the database is a number such as 0" +
            (text.find('@') == std::string_view::npos ? ", not " + core::printable(text)
                                                      : "; " + std::string{encoding_of_passwords});
        return false;
    }
    return true;
}

bool parse_host(std::string_view text, address& into, std::string& fault) {
    auto port = std::string_view{};
    if (text.starts_with('[')) {
        const auto close = text.find(']');
        if (close == std::string_view::npos) {
            fault = "an address in brackets has no end";
            return false;
        }
        into.host = text.substr(1, close - 1);
        text.remove_prefix(close + 1);
        if (!text.empty() && text.front() != ':') {
            fault = "after an address in brackets comes a port";
            return false;
        }
        port = text.empty() ? text : text.substr(1);
        text = text.empty() ? std::string_view{"-"} : text;
    } else {
        const auto colon = text.find(':');
        const auto host = percent_decoded(text.substr(0, colon));
        into.host = host.value_or("");
        port = colon == std::string_view::npos ? std::string_view{} : text.substr(colon + 1);
        text = colon == std::string_view::npos ? std::string_view{"-"} : text;
    }
    if (into.host.empty() || into.host.find_first_of(", ") != std::string::npos) {
        fault = "it names no host; write redis://host:6379";
        return false;
    }
    if (text != "-" && (!parse(port, into.port) || into.port == 0)) {
        // What stands there may be a password.
        const bool number = std::all_of(
            port.begin(), port.end(), [](char one) { return one >= '0' && one <= '9'; });
        fault = "the port is a number between 1 and 65535" +
                (number && !port.empty() ? ", not " + core::printable(port)
                                         : "; " + std::string{encoding_of_passwords});
        return false;
    }
    return true;
}

bool parse_user(std::string_view text, address& into, std::string& fault) {
    const auto colon = text.find(':');
    const auto user = percent_decoded(text.substr(0, colon));
    const auto password = colon == std::string_view::npos ? std::optional<std::string>{""}
                                                          : percent_decoded(text.substr(colon + 1));
    if (!user || !password) {
        fault = "the user or the password is not encoded as a URL asks for";
        return false;
    }
    into.user = *user;
    into.password = *password;
    if (!into.user.empty() && into.password.empty()) {
        fault = "it names a user and no password; write redis://user:password@host";
        return false;
    }
    return true;
}

/// False: `fault` says why, or is empty if the option is another one.
bool take_tls_option(std::string_view name,
                     const std::string& value,
                     address& into,
                     std::string& fault) {
    if (name == "verify") {
        fault =
            "verify cannot be set: the server is always verified; trust its own certificate by "
            "ca=FILE, or another name of it by sni=NAME";
        return false;
    }
    if (name != "ca" && name != "cert" && name != "key" && name != "sni") {
        return false;
    }
    if (!into.tls) {
        fault = core::printable(name) + " goes with TLS; write rediss://";
        return false;
    }
    if (name == "sni") {
        into.tls->server_name = value;
        if (value.empty() || std::any_of(value.begin(), value.end(), [](char one) {
                return one <= ' ' || one > '~';
            })) {
            fault = "sni is a host name or an IP address, not " + core::printable(value);
            return false;
        }
        return true;
    }
    if (!value.starts_with('/') || value.find('\0') != std::string::npos) {
        fault = core::printable(name) + " is the whole path of a file, such as /etc/ssl/" +
                std::string{name} + ".pem, not " + core::printable(value);
        return false;
    }
    auto& file = name == "ca"     ? into.tls->ca
                 : name == "cert" ? into.tls->certificate
                                  : into.tls->key;
    file = value;
    return true;
}

bool take_option(std::string_view name,
                 const std::string& value,
                 address& into,
                 std::string& fault) {
    if (name == "prefix") {
        into.prefix = value;
        if (!value.empty() &&
            (!core::fault_of_key(value).empty() || !names::fault_of(value).empty())) {
            fault = "the prefix is no text that a key may begin with";
            return false;
        }
        return true;
    }
    if (name == "name") {
        into.name = value;
        if (value.empty() || std::any_of(value.begin(), value.end(), [](char one) {
                return one <= ' ' || one > '~';
            })) {
            fault = "the name of a connection is made of visible ASCII characters, without blanks";
            return false;
        }
        return true;
    }
    if (name == "db") {
        return parse_database(value, into, fault);
    }
    if (take_tls_option(name, value, into, fault)) {
        return true;
    }
    if (fault.empty()) {
        fault = "unknown option " + core::printable(name) + "; there are: " +
                (into.tls ? "ca, cert, db, guarantee, key, max_ttl, name, prefix, sni"
                          : "db, guarantee, max_ttl, name, prefix");
    }
    return false;
}

}  // namespace

std::string address::shown() const {
    std::string text = tls ? "rediss://" : socket.empty() ? "redis://" : "redis+unix://";
    if (!user.empty()) {
        text += user + "@";
    }
    if (socket.empty()) {
        text += host.find(':') == std::string::npos ? host : "[" + host + "]";
        text += ":" + std::to_string(port) + "/" + std::to_string(database);
    } else {
        text += socket;
        text += database == 0 ? "" : "?db=" + std::to_string(database);
    }
    return core::printable(text, 500);
}

std::optional<address> parse_address(std::string_view text,
                                     const std::map<std::string, std::string>& options,
                                     std::string& fault) {
    address made;
    text = text.substr(0, text.find('?'));
    const auto scheme = text.substr(0, text.find(':'));
    if (scheme.size() == secured.size() &&
        std::equal(scheme.begin(), scheme.end(), secured.begin(), [](char one, char other) {
            return std::tolower(static_cast<unsigned char>(one)) == other;
        })) {
        made.tls.emplace();
    }
    const bool is_socket = text.find('+') < text.find(':');
    text.remove_prefix(std::min(text.find(':') + 1, text.size()));
    if (!text.starts_with("//")) {
        fault = "after the scheme come two slashes; write redis://host:6379";
        return std::nullopt;
    }
    text.remove_prefix(2);
    auto slash = std::min(text.find('/'), text.size());
    auto authority = text.substr(0, slash);
    const auto path = text.substr(slash);
    if (const auto at = authority.rfind('@'); at != std::string_view::npos) {
        if (!parse_user(authority.substr(0, at), made, fault)) {
            return std::nullopt;
        }
        authority.remove_prefix(at + 1);
    }
    if (is_socket) {
        const auto decoded = percent_decoded(path);
        if (!authority.empty() || !decoded || decoded->size() < 2) {
            fault = "it names no socket; write redis+unix:///path/to/redis.sock";
            return std::nullopt;
        }
        made.socket = *decoded;
    } else {
        if (!parse_host(authority, made, fault)) {
            return std::nullopt;
        }
        if (path.size() > 1 && !parse_database(path.substr(1), made, fault)) {
            return std::nullopt;
        }
    }
    remote::strict_options strict;
    for (const auto& [name, value] : options) {
        if (remote::strict_options::knows(name) ? !strict.take(name, value, fault)
                                                : !take_option(name, value, made, fault)) {
            return std::nullopt;
        }
    }
    const auto longest_ttl = strict.longest_ttl(fault);
    if (!longest_ttl) {
        return std::nullopt;
    }
    made.longest_ttl = *longest_ttl;
    if (made.tls && made.tls->certificate.empty() && !made.tls->key.empty()) {
        fault = "key goes with cert, the file of the certificate that it belongs to";
        return std::nullopt;
    }
    return made;
}

}  // namespace dibs::store::redis
