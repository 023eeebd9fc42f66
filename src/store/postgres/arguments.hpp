// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the server's functions and statements take: a verb as numbers, and those of a batch as arrays,
// one for each part.

#include "core/verbs.hpp"
#include "store/postgres/steps.hpp"
#include "store/postgres/wire.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dibs::store::postgres {

/// The server knows for ever by it.
inline constexpr std::int64_t number_max = std::numeric_limits<std::int64_t>::max();

/// One entry as the server's function takes it.
struct asked {
    std::int64_t verb = 0;
    const core::holder_id* holder = nullptr;
    std::int64_t time = 0;
    std::int64_t fences = 0;
    std::int64_t floor = 0;
    std::int64_t weight = 1;
    std::int64_t capacity = 1;
    std::int64_t flags = 0;
    std::int64_t seen = 0;
    std::optional<std::int64_t> not_after;
    std::int64_t queue = 0;
    const core::result_to_keep* result = nullptr;
    const core::holder_id* adopter = nullptr;
    const std::string* reason = nullptr;
};

inline constexpr std::int64_t flag_attached = 1;
inline constexpr std::int64_t flag_late = 2;
inline constexpr std::int64_t flag_adopter_attached = 4;
inline constexpr std::int64_t flag_simple = 8;

/// What there is a short way for: nothing but acquire (no mark, no queue), renew (the same fences, no
/// adopter) or release (no result) of an exclusive lease.
[[nodiscard]] bool is_simple(const core::verb& what) noexcept;
[[nodiscard]] bool is_acquire(const core::entry& what) noexcept;

/// No time that anybody will live to see, and such that the clock can be added to it, at most.
[[nodiscard]] std::int64_t clamped(core::microseconds time) noexcept;
/// The same, or for ever.
[[nodiscard]] std::int64_t lasting(core::microseconds time) noexcept;
[[nodiscard]] std::string_view bytes_of(const core::holder_id& holder) noexcept;

[[nodiscard]] asked described(const core::verb& what);
[[nodiscard]] std::vector<asked> described(const std::vector<core::entry>& entries,
                                           const std::vector<std::uint32_t>& which);

template <typename Get>
void numbers(parameters& into, const std::vector<asked>& all, Get get) {
    into.array(parameters::kind::number, all.size());
    for (const auto& one : all) {
        into.element(get(one));
    }
}

template <typename Get>
void holders(parameters& into, const std::vector<asked>& all, Get get) {
    into.array(parameters::kind::bytes, all.size());
    for (const auto& one : all) {
        const core::holder_id* holder = get(one);
        if (holder == nullptr) {
            into.null_element();
        } else {
            into.element(bytes_of(*holder));
        }
    }
}

/// With the prefix of the store.
void keys(parameters& into,
          const std::vector<core::entry>& entries,
          const std::vector<std::uint32_t>& which,
          const caller& self);
void not_after(parameters& into, const std::vector<asked>& all);

}  // namespace dibs::store::postgres
