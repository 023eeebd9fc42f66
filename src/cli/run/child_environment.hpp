// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the child of `dibs run` finds in its environment about its lease.

#include "cli/settings/settings.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dibs::cli {

struct lease_facts {
    std::string key;
    std::uint64_t fence = 0;
    std::vector<std::pair<std::string, std::uint64_t>> also;  ///< further keys and their fences
    std::chrono::milliseconds ttl{};
    std::int64_t deadline_boottime_ns = 0;
    std::string run_id;
    store_choice store;
};

/// `inherited` with every name of ours replaced or removed: an outer lease's fence must never be
/// taken for this one's. DIBS_STORE is set only if the URL holds no secret, and stays as it was if
/// the URL came from there.
[[nodiscard]] std::vector<std::string> child_environment(const std::vector<std::string>& inherited,
                                                         const lease_facts& facts);

/// The environment of this process.
[[nodiscard]] std::vector<std::string> own_environment();

/// Whether a lease on `key` with this fence belongs to an outer `dibs run`, by what it left in
/// DIBS_HELD_KEYS.
[[nodiscard]] bool held_by_outer_run(std::string_view held_keys,
                                     std::string_view key,
                                     std::uint64_t fence);

/// Whether an outer `dibs run` had this key at all.
[[nodiscard]] bool named_by_outer_run(std::string_view held_keys, std::string_view key);

/// 32 hexadecimal digits, different for every run.
[[nodiscard]] std::string new_run_id();

}  // namespace dibs::cli
