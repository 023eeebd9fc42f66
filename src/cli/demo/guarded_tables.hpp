// SPDX-License-Identifier: Apache-2.0
#pragma once
// As guarded_row, in a PostgreSQL database: a table that takes everything, and one that is protected.

#include "cli/demo/demo_database.hpp"

#include <cstdint>
#include <string>

namespace dibs::cli {

class guarded_tables {
  public:
    guarded_tables(const std::string& url, std::string key);

    /// Writes both, and tells. Whether the guarded one took it. Each process of the demo by a
    /// connection of its own.
    [[nodiscard]] bool write(const std::string& who, std::uint64_t fence) const;
    /// Tells whose writing they hold. Whether it is that of `of_plain` and `of_guarded`.
    [[nodiscard]] bool shows_who_was_last(const std::string& of_plain,
                                          const std::string& of_guarded) const;

  private:
    demo_database data_;
    std::string key_;
};

}  // namespace dibs::cli
