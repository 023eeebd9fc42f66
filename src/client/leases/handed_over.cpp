// SPDX-License-Identifier: Apache-2.0
#include "client/leases/handed_over.hpp"

#include "core/key.hpp"

#include <charconv>

namespace dibs::detail {

namespace {
constexpr std::string_view first_part = "dibs1:";
constexpr std::size_t holder_digits = 32;

bool holds_another(std::string_view key) {
    for (auto at = key.find(first_part); at != std::string_view::npos;
         at = key.find(first_part, at + 1)) {
        const auto rest = key.substr(at + first_part.size());
        if (rest.size() > holder_digits && rest[holder_digits] == ':' &&
            core::holder_id::parse(rest.substr(0, holder_digits))) {
            return true;
        }
    }
    return false;
}
}  // namespace

std::string handed_over::text() const {
    return std::string(first_part) + holder.text() + ":" + std::to_string(fence) + ":" + key;
}

std::optional<handed_over> handed_over::parse(std::string_view text) {
    if (!text.starts_with(first_part)) {
        return std::nullopt;
    }
    text.remove_prefix(first_part.size());
    const auto holder = core::holder_id::parse(text.substr(0, holder_digits));
    if (!holder || text.size() <= holder_digits || text[holder_digits] != ':') {
        return std::nullopt;
    }
    text.remove_prefix(holder_digits + 1);
    core::fence_number fence = 0;
    const auto* const end = text.data() + text.size();
    const auto [at, fault] = std::from_chars(text.data(), end, fence);
    if (fault != std::errc{} || at == end || *at != ':' || fence == 0) {
        return std::nullopt;
    }
    text.remove_prefix(static_cast<std::size_t>(at - text.data()) + 1);
    // Two handles on one line, say out of two variables: what looks like a key holds a secret.
    if (!core::fault_of_key(text).empty() || holds_another(text)) {
        return std::nullopt;
    }
    return handed_over{*holder, fence, std::string(text)};
}

}  // namespace dibs::detail
