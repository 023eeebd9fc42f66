// SPDX-License-Identifier: Apache-2.0
#pragma once
// A lease as text, on its way to another process.

#include "core/fence.hpp"
#include "core/holder_id.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace dibs::detail {

struct handed_over {
    core::holder_id holder;
    core::fence_number fence = 0;
    std::string key;

    /// `dibs1:HOLDER:FENCE:KEY`. The key comes last, since it may hold any character.
    [[nodiscard]] std::string text() const;
    /// Of one alone: a key that holds another such text is refused, since it would be told to people.
    [[nodiscard]] static std::optional<handed_over> parse(std::string_view text);
};

}  // namespace dibs::detail
