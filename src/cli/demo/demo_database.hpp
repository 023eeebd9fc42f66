// SPDX-License-Identifier: Apache-2.0
#pragma once
// A schema of a demo's own in somebody's PostgreSQL database, with the data layer in it.

#include "guard/session.hpp"

#include <string>

namespace dibs::cli {

class demo_database {
  public:
    /// Also drops those that demos left behind that were killed. Errors: dibs::error.
    explicit demo_database(const std::string& url);
    demo_database(const demo_database&) = delete;
    demo_database& operator=(const demo_database&) = delete;
    ~demo_database();

    [[nodiscard]] const std::string& schema() const noexcept { return schema_; }
    /// `TABLE` of this schema.
    [[nodiscard]] std::string name(const std::string& table) const { return schema_ + "." + table; }
    /// A connection of one process.
    [[nodiscard]] guard::session open() const { return guard::session(url_); }
    void run(const std::string& sql) const { (void)postgres::execute(own_.raw(), sql); }
    /// The first column of the first row.
    [[nodiscard]] std::string ask(const std::string& sql) const;

  private:
    std::string url_;
    guard::session own_;
    std::string schema_;
};

}  // namespace dibs::cli
