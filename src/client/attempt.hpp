// SPDX-License-Identifier: Apache-2.0
#pragma once
// An acquire that tells what stood in its way.

#include <dibs/client.hpp>

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace dibs::detail {

/// How an acquire ended, with what stood in the way.
struct attempt {
    std::optional<lease> granted;
    std::vector<holder> holders;  ///< who has the key
    bool done = false;            ///< a fresh result is there
    bool blocked = false;         ///< an operator's hold is in force
    bool queue_first = false;     ///< nobody had the key: those in its queue come first
    std::string blocked_reason;
    std::chrono::microseconds retry_after{};
    std::error_code error;
    std::string message;  ///< with `error`: key, store, what happened
};

/// As client::acquire.
[[nodiscard]] attempt acquire_with_reason(client& through,
                                          std::string_view key,
                                          acquire_options options,
                                          std::stop_token stop) noexcept;

/// How client::acquire_all ended.
struct joint_attempt {
    std::optional<lease_set> granted;
    std::string key;  ///< without leases: the one that could not be had
    attempt why;      ///< what stood in its way
};

class client_core;

/// Brings keys into their order, each once. What is wrong with them or the options is in `why`.
[[nodiscard]] joint_attempt check_keys(client_core* core,
                                       std::vector<std::string>& keys,
                                       const acquire_options& options);

/// As client::acquire_all.
[[nodiscard]] joint_attempt acquire_all_with_reason(client& through,
                                                    std::vector<std::string> keys,
                                                    acquire_options options,
                                                    std::stop_token stop) noexcept;
/// The same for a term of leadership: never handed on within the process, since observers would not see that.
[[nodiscard]] attempt campaign_with_reason(client& through,
                                           std::string_view key,
                                           acquire_options options,
                                           std::stop_token stop) noexcept;

}  // namespace dibs::detail
