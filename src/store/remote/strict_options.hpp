// SPDX-License-Identifier: Apache-2.0
#pragma once
// The options of a store's URL that ask for `guarantee=strict`.

#include "core/time.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace dibs::store::remote {

/// Thread safety: none.
class strict_options {
  public:
    [[nodiscard]] static bool knows(std::string_view name) noexcept;

    /// One of the options that it knows, in any order. False: `fault` says why not.
    bool take(std::string_view name, const std::string& value, std::string& fault);

    /// When all were taken: the longest ttl that is granted, none where nobody asked for the guarantee.
    /// Empty: `fault` says why.
    [[nodiscard]] std::optional<core::microseconds> longest_ttl(std::string& fault) const;

  private:
    bool strict_ = false;
    std::optional<core::microseconds> longest_;
};

}  // namespace dibs::store::remote
