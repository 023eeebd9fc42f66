// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a cached value knows of a call, of what it has read, and of a flight. For its own sources alone.

#include "recipes/cached/cached_value.hpp"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace dibs::recipes {

using core::instant;
using core::microseconds;
using core::nanoseconds;

/// Counts every result as not fresh. The largest that each store can compare.
inline constexpr core::fence_number all_seen = 9'007'199'254'740'991;

inline const std::string newer_release = "the value was written by a newer release";
inline const std::string no_shared_value = "the key keeps a result that is not a shared value";

[[nodiscard]] inline std::string on_hold(const std::string& reason) {
    return "on hold by an operator: " + reason;
}

[[nodiscard]] inline instant after(instant since, nanoseconds span) {
    return span >= instant::max() - since ? instant::max() : since + span;
}

[[nodiscard]] inline instant after(instant since, microseconds span) {
    return span >= std::chrono::duration_cast<microseconds>(instant::max() - since) ? instant::max()
                                                                                    : since + span;
}

class cached_value::call {
  public:
    call(cached_wish wanted, completion told, instant now)
        : wish(wanted), done(std::move(told)), since(now) {
        until = wish.wait >= instant::max() - now ? instant::max() : now + wish.wait;
    }

    cached_wish wish;
    completion done;
    const instant since;
    instant until;
    bool finished = false;
};

struct cached_value::reading {
    cached_record record;  ///< its spans as of `since`
    std::string text;      ///< as it is in the store
    core::fence_number fence = 0;
    bool intent = false;  ///< a mark: nobody has told how that fetch ended
    instant since{};
    instant written{};
    instant fresh_until{};
    instant looked_at{};

    [[nodiscard]] instant valid_until() const {
        return record.has_value() ? after(since, record.life) : instant{};
    }
};

struct cached_value::flight {
    mutex::call_ptr asking;
    lease_ptr lease;
    core::fence_number seen = 0;
    instant fetch_began{};
    bool fetching = false;
    cached_record brought;  ///< on its way to the store
    microseconds fresh{};
    bool good = false;  ///< `brought` has a new value
    std::vector<core::holder_info> holders;
};

}  // namespace dibs::recipes
