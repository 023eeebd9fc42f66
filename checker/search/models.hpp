// SPDX-License-Identifier: Apache-2.0
#pragma once
// The sequential objects that C4 compares with.

#include "checker/event.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace dibs_checker {

[[nodiscard]] constexpr std::size_t mixed(std::int64_t left, std::int64_t right) noexcept {
    return (static_cast<std::size_t>(left) * 0x9e3779b97f4a7c15U) ^
           (static_cast<std::size_t>(right) * 0xc2b2ae3d27d4eb4fU);
}

/// A register behind a fence: it takes a write or a claim whose fence is at least the largest that
/// it took, and refuses the others as stale.
struct fenced_register {
    enum class kind : std::uint8_t { write, claim, refused, read };
    struct action {
        kind what = kind::read;
        std::int64_t fence = 0;
        bool fenced = true;  ///< without a fence a write is always taken
        std::int64_t value = null_value;
    };
    struct state {
        std::int64_t largest = -1;
        std::int64_t value = null_value;

        friend bool operator==(const state&, const state&) = default;
        [[nodiscard]] std::size_t hash() const noexcept { return mixed(largest, value); }
    };

    [[nodiscard]] static state initial() noexcept { return {}; }

    [[nodiscard]] static std::optional<state> step(const state& now, const action& what) noexcept {
        switch (what.what) {
            case kind::read:
                return what.value == now.value ? std::optional{now} : std::nullopt;
            case kind::refused:
                return what.fence < now.largest ? std::optional{now} : std::nullopt;
            case kind::write:
            case kind::claim:
                break;
        }
        if (what.fenced && what.fence < now.largest) {
            return std::nullopt;
        }
        auto after = now;
        after.largest = what.fenced ? what.fence : now.largest;
        if (what.what == kind::write) {
            after.value = what.value;
        }
        return after;
    }

    [[nodiscard]] static std::optional<std::int64_t> rank(const action&) noexcept {
        return std::nullopt;
    }
    [[nodiscard]] static std::int64_t reached(const state& now) noexcept { return now.largest; }
    [[nodiscard]] static bool observes(const action& what) noexcept {
        return what.what == kind::read || what.what == kind::refused;
    }
    [[nodiscard]] static bool spent(const state& now, const action& what) noexcept {
        return what.fenced && what.fence < now.largest;
    }
};

/// The mutex with fences, as in the FencedMutex model of Hazelcast's Jepsen suite, and leases that
/// end by themselves: an acquire is legal when nobody holds it and its fence is larger than the
/// last one, a release when this fence holds it. An ending is an optional operation that begins
/// when the lease may end.
struct fenced_mutex {
    enum class kind : std::uint8_t { acquire, release };
    struct action {
        kind what = kind::acquire;
        std::int64_t fence = 0;
    };
    struct state {
        std::int64_t last = -1;
        bool held = false;

        friend bool operator==(const state&, const state&) = default;
        [[nodiscard]] std::size_t hash() const noexcept { return mixed(last, held ? 1 : 0); }
    };

    [[nodiscard]] static state initial() noexcept { return {}; }

    [[nodiscard]] static std::optional<state> step(const state& now, const action& what) noexcept {
        if (what.what == kind::acquire) {
            return !now.held && what.fence > now.last ? std::optional{state{what.fence, true}}
                                                      : std::nullopt;
        }
        return now.held && what.fence == now.last ? std::optional{state{now.last, false}}
                                                  : std::nullopt;
    }

    [[nodiscard]] static std::optional<std::int64_t> rank(const action& what) noexcept {
        return what.what == kind::acquire ? std::optional{what.fence} : std::nullopt;
    }
    [[nodiscard]] static std::int64_t reached(const state& now) noexcept { return now.last; }
    [[nodiscard]] static bool observes(const action&) noexcept { return false; }
    [[nodiscard]] static bool spent(const state& now, const action& what) noexcept {
        return what.fence < now.last || (what.fence == now.last && !now.held);
    }
};

}  // namespace dibs_checker
