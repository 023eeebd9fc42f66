// SPDX-License-Identifier: Apache-2.0
#include "cli/output/redact.hpp"

#include "core/key.hpp"
#include "core/redaction.hpp"

namespace dibs::cli {

namespace {

constexpr std::size_t command_bytes_max = 200;

std::string quoted(const std::string& word) {
    const bool plain =
        !word.empty() && word.find_first_of(" \t\n\"'\\$`;&|<>?()") == std::string::npos;
    return plain ? word : "'" + word + "'";
}

}  // namespace

std::string redact_url(std::string_view url) {
    return core::redacted_url(url);
}

bool has_secret(std::string_view url) {
    return redact_url(url) != url;
}

std::string redact_command(std::span<const std::string> words) {
    std::string shown;
    for (const auto& word : core::redacted_words(words)) {
        shown += (shown.empty() ? "" : " ") + quoted(word);
    }
    return core::printable(shown, command_bytes_max);
}

}  // namespace dibs::cli
