// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed between two looks at a store's records.
// Thread safety: none.

#include <dibs/info.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dibs::cli {

struct change {
    std::chrono::system_clock::time_point when;  ///< seen
    std::string_view what;  ///< granted, released, expired, hold-set, hold-lifted
    std::string key;
    std::uint64_t fence = 0;  ///< 0 with holds
    std::optional<dibs::holder> who;
    std::string reason;  ///< hold-set
};

class watched_changes {
  public:
    /// Of one key, what ended comes before what began. The first look tells how things are.
    [[nodiscard]] std::vector<change> look(std::vector<dibs::record> records,
                                           std::chrono::system_clock::time_point now);

  private:
    std::map<std::string, dibs::record, std::less<>> before_;
    std::chrono::system_clock::time_point looked_;
    bool first_ = true;
};

}  // namespace dibs::cli
