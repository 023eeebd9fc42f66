// SPDX-License-Identifier: Apache-2.0
#pragma once
// Short ways to say a verb in a test. What is not a parameter is set on the result:
//   auto asked = acquire_of("k", holder_of(1));
//   asked.seen = 7;

#include "core/verbs.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace dibs::testing {

inline constexpr core::microseconds usual_ttl{std::chrono::seconds{10}};

/// A holder id by number, never empty.
[[nodiscard]] inline core::holder_id holder_of(std::uint64_t number) {
    core::holder_id made;
    made.bytes[0] = std::byte{0xD1};
    for (std::size_t at = 0; at < sizeof number; ++at) {
        made.bytes[15 - at] = static_cast<std::byte>(number >> (8 * at));
    }
    return made;
}

[[nodiscard]] inline core::acquire acquire_of(std::string_view key,
                                              core::holder_id holder,
                                              core::microseconds ttl = usual_ttl) {
    core::acquire asked;
    asked.key = key;
    asked.holder = holder;
    asked.ttl = ttl;
    return asked;
}

/// It stands in the queue when it cannot be granted.
[[nodiscard]] inline core::acquire queued_acquire_of(
    std::string_view key,
    core::holder_id holder,
    core::microseconds queue = std::chrono::seconds{5}) {
    auto asked = acquire_of(key, holder);
    asked.queue = queue;
    return asked;
}

[[nodiscard]] inline core::acquire shared_acquire_of(std::string_view key,
                                                     core::holder_id holder,
                                                     std::uint32_t weight,
                                                     std::uint32_t capacity) {
    auto asked = acquire_of(key, holder);
    asked.part = {weight, capacity};
    return asked;
}

[[nodiscard]] inline core::result_to_keep result_of(std::string_view value,
                                                    core::microseconds fresh,
                                                    core::microseconds keep) {
    core::result_to_keep made;
    made.value = value;
    made.fresh = fresh;
    made.keep = keep;
    return made;
}

[[nodiscard]] inline core::renew renew_of(std::string_view key,
                                          core::holder_id holder,
                                          core::microseconds ttl = usual_ttl) {
    core::renew asked;
    asked.key = key;
    asked.holder = holder;
    asked.ttl = ttl;
    return asked;
}

[[nodiscard]] inline core::release release_of(std::string_view key, core::holder_id holder) {
    core::release asked;
    asked.key = key;
    asked.holder = holder;
    return asked;
}

[[nodiscard]] inline core::release finish_of(std::string_view key,
                                             core::holder_id holder,
                                             core::result_to_keep result,
                                             bool late = false) {
    auto asked = release_of(key, holder);
    asked.result = std::move(result);
    asked.late = late;
    return asked;
}

[[nodiscard]] inline core::revoke revoke_of(std::string_view key, core::fence_number fence) {
    core::revoke asked;
    asked.key = key;
    asked.fence = fence;
    return asked;
}

[[nodiscard]] inline core::block block_of(std::string_view key,
                                          core::microseconds duration,
                                          std::string_view reason) {
    core::block asked;
    asked.key = key;
    asked.duration = duration;
    asked.reason = reason;
    return asked;
}

}  // namespace dibs::testing
