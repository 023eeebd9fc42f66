// SPDX-License-Identifier: Apache-2.0
#pragma once
// Leases that scripts pass around as text: prolonged and given back by that text. Unlike
// client::adopt this leaves the holder id as it is, so that the text stays good for the next
// command of the script.

#include <dibs/client.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

namespace dibs::detail {

struct handle_outcome {
    std::string key;  ///< empty: the text is not a handle
    std::uint64_t fence = 0;
    std::chrono::milliseconds remaining{};  ///< renewed: how long it is held for sure
    std::error_code error;  ///< condition::lease_lost: expired, given back, adopted or taken away
    std::string message;    ///< with `error`: key, store, what happened. Never the handle
};

struct handle_made {
    std::string text;
    std::error_code error;
    std::string message;  ///< with `error`: key, store, what happened
};

/// As lease::hand_over, which tells no words of the store.
[[nodiscard]] handle_made make_handle(lease& held) noexcept;

/// `handle`: the text of lease::hand_over.
[[nodiscard]] handle_outcome renew_handle(client& through,
                                          std::string_view handle,
                                          std::chrono::milliseconds ttl) noexcept;
[[nodiscard]] handle_outcome release_handle(client& through, std::string_view handle) noexcept;

}  // namespace dibs::detail
