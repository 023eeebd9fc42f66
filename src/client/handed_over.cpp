// SPDX-License-Identifier: Apache-2.0
#include "client/handed_over.hpp"

#include "core/key.hpp"

#include <charconv>

namespace dibs::detail {

namespace {
constexpr std::string_view first_part = "dibs1:";
constexpr std::size_t holder_digits = 32;
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
    if (!core::fault_of_key(text).empty()) {
        return std::nullopt;
    }
    return handed_over{*holder, fence, std::string(text)};
}

}  // namespace dibs::detail
