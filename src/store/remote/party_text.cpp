// SPDX-License-Identifier: Apache-2.0
#include "store/remote/party_text.hpp"

#include "core/key.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>

namespace dibs::store::remote {

namespace {

constexpr char between = '\x1f';
constexpr std::size_t field_bytes_max = 2000;

/// Printable, and so without separators and broken characters.
std::string field(const std::string& text) {
    return core::printable(text, field_bytes_max);
}

std::string_view cut(std::string_view& text) noexcept {
    const auto end = std::min(text.find(between), text.size());
    const auto found = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return found;
}

}  // namespace

std::string text_of(const core::party& who) {
    return field(who.host) + between + std::to_string(who.pid) + between + field(who.user) +
           between + field(who.command);
}

core::party party_of(std::string_view text) {
    core::party who;
    who.host = cut(text);
    const auto pid = cut(text);
    if (std::from_chars(pid.data(), pid.data() + pid.size(), who.pid).ptr !=
        pid.data() + pid.size()) {
        who.pid = 0;
    }
    who.user = cut(text);
    who.command = text;
    return who;
}

}  // namespace dibs::store::remote
