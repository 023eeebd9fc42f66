// SPDX-License-Identifier: Apache-2.0
#pragma once
// What is in the store, without waiting for all of it, or for any of it.

#include <dibs/client.hpp>

#include <functional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace dibs::detail {

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

}  // namespace dibs::detail
