// SPDX-License-Identifier: Apache-2.0
#include "store/url.hpp"

#include <algorithm>
#include <cctype>

namespace dibs::store {

namespace {

int digit_of(char letter) {
    if (letter >= '0' && letter <= '9') {
        return letter - '0';
    }
    const auto lower = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

}  // namespace

std::optional<std::string> percent_decoded(std::string_view text) {
    std::string plain;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] != '%') {
            plain += text[at];
            continue;
        }
        if (at + 2 >= text.size()) {
            return std::nullopt;
        }
        const int high = digit_of(text[at + 1]);
        const int low = digit_of(text[at + 2]);
        if (high < 0 || low < 0 || (high == 0 && low == 0)) {
            return std::nullopt;
        }
        plain += static_cast<char>(high * 16 + low);
        at += 2;
    }
    return plain;
}

std::optional<url> parse_url(std::string_view text, std::string& fault) {
    constexpr const char* no_scheme =
        "it has no scheme; write sqlite:FILE for a file, redis://HOST or postgres://HOST/DATABASE "
        "for a server";
    const auto colon = text.find(':');
    if (colon == std::string_view::npos || colon == 0) {
        fault = no_scheme;
        return std::nullopt;
    }
    url parsed;
    for (const char letter : text.substr(0, colon)) {
        if (std::isalnum(static_cast<unsigned char>(letter)) == 0 && letter != '+') {
            fault = no_scheme;
            return std::nullopt;
        }
        parsed.scheme += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    }
    const auto after = text.substr(colon + 1);
    const auto mark = std::min(after.find('?'), after.size());
    const auto rest = percent_decoded(after.substr(0, mark));
    if (!rest) {
        fault =
            "a % in it is not followed by two hexadecimal digits other than 00 (write %25 for a "
            "plain %)";
        return std::nullopt;
    }
    parsed.rest = *rest;
    auto options = mark < after.size() ? after.substr(mark + 1) : std::string_view{};
    while (!options.empty()) {
        const auto end = std::min(options.find('&'), options.size());
        const auto option = options.substr(0, end);
        const auto equals = option.find('=');
        const auto name = percent_decoded(option.substr(0, equals));
        const auto value = equals == std::string_view::npos
                               ? std::optional<std::string>{""}
                               : percent_decoded(option.substr(equals + 1));
        if (!name || name->empty() || !value) {
            fault = "an option in it is not of the form name=value";
            return std::nullopt;
        }
        if (!parsed.options.emplace(*name, *value).second) {
            fault = "the option " + *name + " is given twice";
            return std::nullopt;
        }
        options.remove_prefix(std::min(end + 1, options.size()));
    }
    return parsed;
}

}  // namespace dibs::store
