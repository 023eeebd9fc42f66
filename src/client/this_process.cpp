// SPDX-License-Identifier: Apache-2.0
#include "client/this_process.hpp"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <iterator>
#include <utility>

namespace dibs::detail {

namespace {

constexpr std::size_t command_bytes_max = 300;

std::string host_name() {
    std::array<char, 256> name{};
    return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

std::string user_name() {
    const auto uid = ::geteuid();
    std::array<char, 4096> buffer{};
    passwd entry{};
    passwd* found = nullptr;
    if (::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) {
        return found->pw_name;
    }
    return std::to_string(uid);
}

std::vector<std::string> command_line() {
    std::ifstream file("/proc/self/cmdline", std::ios::binary);
    const std::string all{std::istreambuf_iterator<char>(file), {}};
    std::vector<std::string> words;
    for (std::size_t at = 0; at < all.size();) {
        const auto end = std::min(all.find('\0', at), all.size());
        words.push_back(all.substr(at, end - at));
        at = end + 1;
    }
    return words;
}

bool speaks_of_a_secret(std::string_view name) {
    std::string lower(name);
    std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char letter) {
        return static_cast<char>(std::tolower(letter));
    });
    static constexpr std::array<std::string_view, 8> hints{
        "passw", "secret", "token", "credential", "apikey", "api-key", "api_key", "private"};
    return std::any_of(hints.begin(), hints.end(), [&](auto hint) {
        return lower.find(hint) != std::string::npos;
    });
}

/// Blanks the password in each `scheme://user:password@` of a word.
std::string without_url_password(std::string word) {
    for (auto at = word.find("://"); at != std::string::npos; at = word.find("://", at + 3)) {
        const auto authority = at + 3;
        const auto end = std::min(word.find_first_of("/?#", authority), word.size());
        const auto sign = word.substr(authority, end - authority).rfind('@');
        if (sign == std::string::npos) {
            continue;
        }
        const auto colon = word.find(':', authority);
        if (colon != std::string::npos && colon < authority + sign) {
            word.replace(colon + 1, authority + sign - colon - 1, "***");
        }
    }
    return word;
}

}  // namespace

std::string blanked(const std::vector<std::string>& words) {
    std::string shown;
    bool next_is_secret = false;
    bool first = true;
    for (const auto& given : words) {
        auto word = without_url_password(given);
        const auto equals = word.find('=');
        if (word.empty()) {
            // Between two blanks; a secret may still follow.
        } else if (next_is_secret && word[0] != '-') {
            word = "***";
            next_is_secret = false;
        } else if (equals != std::string::npos && speaks_of_a_secret(word.substr(0, equals))) {
            word.replace(equals + 1, std::string::npos, "***");
            next_is_secret = false;
        } else {
            next_is_secret = word.starts_with('-') && speaks_of_a_secret(word);
        }
        shown += std::exchange(first, false) ? "" : " ";
        shown += word;
    }
    return shown;
}

std::string blanked(std::string_view command) {
    std::vector<std::string> words;
    for (std::size_t at = 0; at <= command.size();) {
        const auto end = std::min(command.find(' ', at), command.size());
        words.emplace_back(command.substr(at, end - at));
        at = end + 1;
    }
    return blanked(words);
}

core::party this_process(std::string command) {
    // A word of the command line may hold blanks, and is one secret then.
    command = command.empty() ? blanked(command_line()) : blanked(command);
    if (command.size() > command_bytes_max) {
        command.resize(command_bytes_max);
        // Not in the middle of a character.
        while (!command.empty() && (static_cast<unsigned char>(command.back()) & 0xC0U) == 0x80U) {
            command.pop_back();
        }
        if (!command.empty() && (static_cast<unsigned char>(command.back()) & 0x80U) != 0) {
            command.pop_back();
        }
        command += "…";
    }
    return {host_name(), ::getpid(), user_name(), std::move(command)};
}

}  // namespace dibs::detail
