// SPDX-License-Identifier: Apache-2.0
#pragma once
// The opaque values of locks and tickets, as batch.lua writes them.

#include "core/verbs.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dibs::store::redis {

struct lock_value {
    core::fence_block fences;
    std::int64_t granted_us = 0;
    core::attachment attached = core::attachment::attached;
    std::string_view process;
    core::party who;
};

/// Empty: somebody else's lock. The holder id in it stays where it is: it is the holder's secret.
[[nodiscard]] std::optional<lock_value> parse_lock(std::string_view value);

/// The lock of those who share a key.
struct shares_value {
    struct share {
        std::uint32_t weight = 1;
        std::int64_t expires_us = 0;  ///< 0: ended by an operator
        std::string_view holder;      ///< the holder's secret
        lock_value value;
    };
    std::uint32_t capacity = 1;
    std::vector<share> shares;
};

/// Empty: it is none.
[[nodiscard]] std::optional<shares_value> parse_shares(std::string_view value);

/// Who stands in a queue, as its ticket says it.
struct ticket_value {
    std::int64_t entered_us = 0;
    std::string process;
    core::party who;
};
[[nodiscard]] std::optional<ticket_value> parse_ticket(std::string_view value);

}  // namespace dibs::store::redis
