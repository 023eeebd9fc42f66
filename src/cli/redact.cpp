// SPDX-License-Identifier: Apache-2.0
#include "cli/redact.hpp"

#include "core/key.hpp"
#include "store/url.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace dibs::cli {

namespace {

constexpr std::string_view blank = "***";
constexpr std::size_t command_bytes_max = 200;

bool sounds_secret(std::string_view name) {
    std::string lower(name);
    std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char character) {
        return static_cast<char>(std::tolower(character));
    });
    constexpr std::array<std::string_view, 8> words{
        "password", "passwd", "pwd", "secret", "token", "apikey", "api-key", "api_key"};
    return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
        return lower.find(word) != std::string::npos;
    });
}

/// Blanks the values of `name=value` pairs that sound secret.
std::string redact_query(std::string_view query) {
    std::string shown;
    while (true) {
        const auto end = query.find('&');
        const auto pair = query.substr(0, end);
        const auto equals = pair.find('=');
        if (equals != std::string_view::npos && equals + 1 < pair.size() &&
            sounds_secret(pair.substr(0, equals))) {
            shown += std::string(pair.substr(0, equals + 1)) + std::string(blank);
        } else {
            shown += pair;
        }
        if (end == std::string_view::npos) {
            return shown;
        }
        shown += '&';
        query.remove_prefix(end + 1);
    }
}

std::string quoted(const std::string& word) {
    const bool plain =
        !word.empty() && word.find_first_of(" \t\n\"'\\$`;&|<>?()") == std::string::npos;
    return plain ? word : "'" + word + "'";
}

/// One word of a command line, which may or may not be a URL.
std::string redact_word(std::string_view url) {
    std::string shown;
    const auto scheme_end = url.find("://");
    if (scheme_end != std::string_view::npos) {
        const auto host_from = scheme_end + 3;
        const auto host_to = std::min(url.find_first_of("/?#", host_from), url.size());
        const auto at = url.substr(host_from, host_to - host_from).rfind('@');
        if (at != std::string_view::npos) {
            const auto login = url.substr(host_from, at);
            const auto colon = login.find(':');
            shown += url.substr(0, host_from);
            shown += login.substr(0, colon);
            if (colon != std::string_view::npos && colon + 1 < login.size()) {
                shown += ":" + std::string(blank);
            } else if (colon != std::string_view::npos) {
                shown += ":";
            }
            url.remove_prefix(host_from + at);
        }
    }
    const auto question = url.find('?');
    shown += url.substr(0, question);
    if (question != std::string_view::npos) {
        shown += "?" + redact_query(url.substr(question + 1));
    }
    return shown;
}

}  // namespace

std::string redact_url(std::string_view url) {
    return store::without_secrets(url);
}

bool has_secret(std::string_view url) {
    return redact_url(url) != url;
}

std::string redact_command(std::span<const std::string> words) {
    std::string shown;
    bool value_is_secret = false;
    for (const auto& word : words) {
        std::string part = redact_word(word);
        const auto equals = part.find('=');
        if (value_is_secret && !part.starts_with("-")) {
            part = blank;
            value_is_secret = false;
        } else if (equals != std::string::npos &&
                   sounds_secret(std::string_view(part).substr(0, equals))) {
            part = part.substr(0, equals + 1) + std::string(blank);
            value_is_secret = false;
        } else {
            value_is_secret =
                part.starts_with("--") && equals == std::string::npos && sounds_secret(part);
        }
        shown += (shown.empty() ? "" : " ") + quoted(part);
    }
    return core::printable(shown, command_bytes_max);
}

}  // namespace dibs::cli
