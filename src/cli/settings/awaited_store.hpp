// SPDX-License-Identifier: Apache-2.0
#pragma once
// Opening the store of a command that waits: a server that is not there yet is part of the wait.

#include "cli/settings/store_access.hpp"

#include <dibs/client.hpp>

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>

namespace dibs::cli {

/// An unreachable store is told within five seconds, opening it included.
inline constexpr auto store_patience = std::chrono::milliseconds{4'500};

struct store_wait {
    std::string key;                   ///< what is waited for
    std::chrono::milliseconds wait{};  ///< zero: one try; dibs::forever: no limit
    bool quiet = false;                ///< says nothing of a server that stays away
};

/// Tries again while the server cannot be reached, takes nobody in or refuses as a standby does (not for
/// wrong passwords and URLs), until the wait is over. Null: stopped. Errors: failure, of the last try.
[[nodiscard]] std::optional<client> open_awaited(const store_choice& store,
                                                 const std::string& command,
                                                 const store_wait& terms,
                                                 const std::stop_token& stop);

/// Between two tries. False: stopped.
[[nodiscard]] bool rest(std::chrono::milliseconds pause, const std::stop_token& stop);

/// What is left of the wait for a key after opening took so long. A wait stays one.
[[nodiscard]] std::chrono::milliseconds left_of(std::chrono::milliseconds wait,
                                                std::chrono::milliseconds spent) noexcept;

/// What one try to get the key may take after that: the store's whole patience for who waits, else what is left of it.
[[nodiscard]] std::chrono::milliseconds patience_left(std::chrono::milliseconds wait,
                                                      std::chrono::milliseconds spent) noexcept;

}  // namespace dibs::cli
