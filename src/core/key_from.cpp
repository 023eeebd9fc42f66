// SPDX-License-Identifier: Apache-2.0
#include "core/key.hpp"
#include "core/sha256.hpp"

#include <dibs/key.hpp>

#include <algorithm>
#include <set>
#include <utility>

namespace dibs {

namespace {

/// Not a hexadecimal digit, so that no written part ends like this.
constexpr std::string_view digest_follows = ":%-";
constexpr std::size_t readable_bytes = 256;

/// The colon stands between parts, the percent sign begins what is written otherwise; braces choose the slot of a Redis
/// Cluster, an @ follows the name of a job.
bool means_something(unsigned char byte) {
    constexpr std::string_view all = ":%{}@";
    return byte <= ' ' || byte == 0x7f ||
           all.find(static_cast<char>(byte)) != std::string_view::npos;
}

void write_part(std::string_view part, std::string& into) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    if (part.empty()) {
        into += '%';
        return;
    }
    // What is no valid text, or could not be seen, is written byte by byte.
    const bool text = core::fault_of_key(part.substr(0, core::key_bytes_max)).empty();
    for (const char one : part) {
        const auto byte = static_cast<unsigned char>(one);
        if (means_something(byte) || (!text && byte >= 0x80)) {
            into += '%';
            into += digits[byte >> 4U];
            into += digits[byte & 0xfU];
        } else {
            into += one;
        }
    }
}

template <typename Words>
std::string with_spaces(const Words& words) {
    std::string all;
    for (const auto& one : words) {
        all.append(one).append(1, ' ');
    }
    return all;
}

}  // namespace

std::string key_from(std::initializer_list<std::string_view> parts) {
    std::string made;
    bool first = true;
    for (const auto part : parts) {
        if (!std::exchange(first, false)) {
            made += ':';
        }
        write_part(part, made);
    }
    if (made.size() <= core::key_bytes_max && core::fault_of_key(made).empty()) {
        return made;
    }
    auto readable = made.substr(0, readable_bytes);
    while (!readable.empty() && !core::fault_of_key(readable).empty()) {
        readable.pop_back();  // in the middle of a character
    }
    return readable + std::string(digest_follows) + core::sha256_of(made);
}

std::string set_part(std::string_view words) {
    std::set<std::string_view> all;
    while (!words.empty()) {
        const auto end = std::min(words.find(' '), words.size());
        if (end > 0) {
            all.insert(words.substr(0, end));
        }
        words.remove_prefix(std::min(end + 1, words.size()));
    }
    std::string made;
    for (const auto one : all) {
        made += (made.empty() ? "" : " ") + std::string(one);
    }
    return made;
}

std::string set_part(std::initializer_list<std::string_view> words) {
    return set_part(with_spaces(words));
}

std::string set_part(std::span<const std::string> words) {
    return set_part(with_spaces(words));
}

}  // namespace dibs
