// SPDX-License-Identifier: Apache-2.0
#pragma once
// The one record that everything in the product is made of: a key has at most one holder (or
// several, up to a capacity), a fence, and at most one result.
//
//            acquire                 finish(result, fresh, keep)
//   free ───────────────▶ held ─────────────────────────────▶ done: a result, fresh for a while,
//    ▲                     │ ▲                                  │       kept for longer
//    │   release / expiry  │ │ acquire, once no longer fresh    │
//    └─────────────────────┘ └──────────────────────────────────┘

#include "core/fence.hpp"
#include "core/holder_id.hpp"
#include "core/time.hpp"
#include "core/verbs.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dibs::core {

/// Stored format of a record. A record with a newer one is refused, never guessed at.
inline constexpr std::uint32_t record_format = 1;

struct grant {
    holder_id holder;
    fence_block fences;
    std::uint32_t weight = 1;
    attachment attached = attachment::attached;
    store_instant granted{};
    store_instant expires{};
    std::uint64_t process = 0;  ///< the store's number for the process that it was granted through
    bool dead = false;  ///< not stored: attached, and the store knows that its process is gone

    [[nodiscard]] bool live(store_now now) const noexcept { return !dead && now.lease < expires; }
};

/// The place of one who waits in the order of arrival. It is alive while `now.lease < until`; who
/// holds it keeps it so by asking again.
struct ticket {
    holder_id holder;
    std::uint64_t number = 0;  ///< rises with arrival
    store_instant entered{};
    store_instant until{};
    std::uint64_t process = 0;  ///< the store's number for the process that asked
    bool dead = false;          ///< not stored: the store knows that its process is gone

    [[nodiscard]] bool live(store_now now) const noexcept { return !dead && now.lease < until; }
};

struct stored_result {
    std::string value;
    fence_number fence = 0;
    bool is_mark = false;
    wall_instant written{};
    wall_instant fresh_until{};  ///< wall_instant::max(): for ever
    wall_instant keep_until{};   ///< wall_instant::max(): for ever
};

struct record {
    fence_number fence = 0;      ///< the largest granted so far
    std::uint32_t capacity = 1;  ///< as agreed by the present grants
    std::vector<grant>
        grants;  ///< those not released; expired and revoked ones stay until the next grant, so
                 ///< that a late finish is told from a stranger's and a loss has its reason
    fence_number revoked = 0;  ///< last fence that an operator ended
    std::optional<stored_result> result;
    wall_instant blocked_until{};  ///< an operator's hold
    std::string blocked_reason;
};

}  // namespace dibs::core
