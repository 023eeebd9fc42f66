// SPDX-License-Identifier: Apache-2.0
#pragma once
// Batches as calls of batch.lua, and its replies as answers. No I/O.

#include "core/verbs.hpp"
#include "store/redis/names.hpp"
#include "store/redis/resp.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dibs::store::redis {

/// Fences at and above it would not survive a Lua number. Microseconds since 1970 reach it in 2255.
inline constexpr core::fence_number fence_limit = (core::fence_number{1} << 53U) - 1;

/// What every call says about the caller.
struct caller {
    std::string process;  ///< told apart from others by it alone
    std::string who;      ///< a party as text (remote/party_text.hpp)
    /// Of guarantee=strict: the longest ttl that is granted; 0: not strict.
    core::microseconds longest_ttl{};
    /// Whether the server counts this process among those that wait for a key.
    std::function<bool(std::string_view key)> listens{};
    /// Whether it hears of locks with which it leaves word. Empty: it does not.
    std::function<bool()> hears_notices{};

    [[nodiscard]] bool takes_notices() const { return hears_notices && hears_notices(); }
};

/// A refusal when the entry cannot be sent at all.
[[nodiscard]] std::optional<core::answer> fault_of(const core::verb& what);

/// Releases, renewals and what operators do, then acquires: the order in which they are executed.
[[nodiscard]] std::vector<std::uint32_t> order_of(std::span<const core::entry> batch,
                                                  std::span<const std::uint32_t> which);

enum class send_as : std::uint8_t { name, text };

/// Of the result, mark or reason in it.
[[nodiscard]] std::size_t bytes_to_keep(const core::verb& what) noexcept;

void write_batch(std::string& out,
                 send_as how,
                 const names& where,
                 const caller& self,
                 std::span<const core::entry> batch,
                 std::span<const std::uint32_t> order);

/// As batches that only look: for listings.
void write_looks(std::string& out,
                 send_as how,
                 const names& where,
                 const caller& self,
                 std::span<const std::string> keys);

/// Fills in the answers of the entries in `order`. False: the reply is not of this script.
[[nodiscard]] bool read_batch(const reply& told,
                              const caller& self,
                              std::span<const core::entry> batch,
                              std::span<const std::uint32_t> order,
                              std::span<core::answer> answers);

[[nodiscard]] bool read_looks(const reply& told,
                              const caller& self,
                              std::span<const std::string> keys,
                              std::vector<core::record_info>& found);

}  // namespace dibs::store::redis
