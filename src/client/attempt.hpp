// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the command needs of the client beyond its public face: who stood in the way, and how to
// keep a child tree and a guard process informed.

#include <dibs/client.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
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

/// The descriptor that a child tree must inherit so that its end, and only its end, ends the lease
/// early. -1: none.
[[nodiscard]] int liveness_descriptor(client& of) noexcept;

/// `told` is called with the deadline of the lease (CLOCK_BOOTTIME, nanoseconds): once before this
/// returns, and whenever it moves, on a thread of the client's. It must be quick, must not throw
/// and must not call the client.
void on_deadline(lease& of, std::function<void(std::int64_t boottime_ns)> told) noexcept;

/// As client::list, but hands each record on as its page is read: a long listing needs no memory
/// for all of it. False: `error` and `message` say why it ended early.
[[nodiscard]] bool for_each_record(client& of,
                                   std::string_view prefix,
                                   const std::function<void(record&&)>& take,
                                   std::error_code& error,
                                   std::string& message);

/// Looks at keys and hands on what is there, an empty record for a key that the store does not know
/// and for an empty one; nothing at all when the store cannot be read. Waits for nothing: `told` is
/// called on a thread of the client's, and must be quick; not at all when the client is closed
/// meanwhile.
void look_at_keys(client& of,
                  std::vector<std::string> keys,
                  std::function<void(std::vector<record>)> told) noexcept;

/// What the store has against a grant of the key that a call of this client waits for: its words, or empty. Waits for
/// nothing: `told` is called as above.
void look_for_trouble(client& of, std::string key, std::function<void(std::string)> told) noexcept;

/// The throwing constructor's text without the exception.
[[nodiscard]] std::optional<client> open_client(std::string_view url,
                                                client_options options,
                                                std::error_code& error,
                                                std::string& message) noexcept;

}  // namespace dibs::detail
