// SPDX-License-Identifier: Apache-2.0
#pragma once
// A connection to a database, for those who have none of their own.

#include <dibs/postgres.hpp>

#include <memory>
#include <string>

namespace dibs::guard {

class session {
  public:
    /// `url`: as libpq takes it. Waits for 5 s per address, or as the URL or PGCONNECT_TIMEOUT say.
    /// Errors: dibs::error, `store_unreachable`.
    explicit session(const std::string& url);

    [[nodiscard]] PGconn* raw() const noexcept { return line_.get(); }

  private:
    std::unique_ptr<PGconn, void (*)(PGconn*)> line_;
};

}  // namespace dibs::guard
