// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a store holds, replayed from its steps alone. The checks look at it just before each step.

#include "checker/history.hpp"

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

namespace dibs_checker {

/// Two ids in one, for maps.
[[nodiscard]] constexpr std::uint64_t pair_of(text_id left, text_id right) noexcept {
    return static_cast<std::uint64_t>(left) << 32U | static_cast<std::uint64_t>(right);
}

/// Finds the newest thing whose block of fences contains a fence.
class block_index {
  public:
    void add(std::int64_t first, std::size_t what) { first_[first] = what; }
    /// What has the largest first fence that is not above `fence`; `none` when there is none.
    [[nodiscard]] std::size_t at_or_below(std::int64_t fence) const {
        const auto after = first_.upper_bound(fence);
        return after == first_.begin() ? none : std::prev(after)->second;
    }
    static constexpr std::size_t none = static_cast<std::size_t>(-1);

  private:
    std::map<std::int64_t, std::size_t> first_;
};

struct stored_grant {
    text_id store = 0;
    text_id key = 0;
    text_id holder = 0;
    std::int64_t fence = 0;
    std::int64_t fence_last = 0;
    std::int64_t weight = 1;
    std::int64_t capacity = 1;
    std::int64_t expires = 0;      ///< by the store's clock
    position given = nowhere;      ///< its first grant
    position prolonged = nowhere;  ///< the step that `expires` stems from
    position ended = nowhere;      ///< by whatever; not by expiry
    bool forgotten = false;        ///< ended by `lost`: still counts until it expires

    /// Whether it stands in the way of others when the store's clock shows `now`.
    [[nodiscard]] bool alive(std::int64_t now) const noexcept {
        return (ended == nowhere || forgotten) && now < expires;
    }
    [[nodiscard]] bool exclusive() const noexcept { return weight == capacity; }
};

class ledger {
  public:
    explicit ledger(const history& of) : all_(of) {}

    /// Applies a step of a store; other events change nothing.
    void take(position at);

    /// Grants of the key that may be alive: look at `alive`.
    [[nodiscard]] const std::vector<std::size_t>& candidates(text_id store, text_id key) const;
    [[nodiscard]] const stored_grant& grant(std::size_t index) const { return grants_[index]; }
    [[nodiscard]] const std::vector<stored_grant>& grants() const noexcept { return grants_; }

    /// The operator's hold that the key is under, or was; nullptr when there was none.
    struct hold {
        std::int64_t until = 0;  ///< by the store's clock
        position set = nowhere;
    };
    [[nodiscard]] const hold* hold_on(text_id store, text_id key) const;

    /// The grant whose block contains the fence, alive or not; nullptr when there was none.
    [[nodiscard]] const stored_grant* with_fence(text_id store,
                                                 text_id key,
                                                 std::int64_t fence) const;
    /// The live grant of a holder; nullptr when it has none.
    [[nodiscard]] const stored_grant* of_holder(text_id store,
                                                text_id key,
                                                text_id holder,
                                                std::int64_t now) const;
    /// The live grant that a `grant` step gives once more to its holder; nullptr when it is a new
    /// one.
    [[nodiscard]] const stored_grant* repeated(const event& step) const;

  private:
    struct key_state {
        std::vector<std::size_t> open;
        block_index fences;
    };
    [[nodiscard]] stored_grant* find(const event& step);

    const history& all_;
    std::vector<stored_grant> grants_;
    std::unordered_map<std::uint64_t, key_state> keys_;
    std::unordered_map<std::uint64_t, hold> holds_;
};

}  // namespace dibs_checker
