// SPDX-License-Identifier: Apache-2.0
#pragma once
// The data that a stale holder writes to: a plain row, which takes everything, and one that refuses
// a fence older than its own.

#include "cli/demo/scene.hpp"

#include <cstdint>
#include <string>

namespace dibs::cli {

class guarded_row {
  public:
    explicit guarded_row(const demo_round& round);

    /// Writes both, and tells. Whether the guarded one took it.
    [[nodiscard]] bool write(const std::string& who, std::uint64_t fence) const;

    /// Tells whose writing they hold. Whether it is that of `of_plain` and `of_guarded`.
    [[nodiscard]] bool shows_who_was_last(const std::string& of_plain,
                                          const std::string& of_guarded) const;

  private:
    std::string file_;
};

}  // namespace dibs::cli
