// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rows as a server sends them: libpq's own results, filled in by hand.

#include "store/postgres/carrier.hpp"
#include "store/postgres/wire.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dibs::simulation::postgres {

class rows {
  public:
    explicit rows(int columns);

    /// What is not set in it is null.
    void begin() { ++row_; }
    void number(int column, std::int64_t value);
    void text(int column, std::string_view value);
    void truth(int column, bool value);
    void numbers(int column, const std::vector<std::int64_t>& values);
    void texts(int column, const std::vector<std::string>& values);

    [[nodiscard]] store::postgres::result_ptr take() { return std::move(made_); }

  private:
    store::postgres::result_ptr made_;
    int row_ = -1;
};

/// The statement failed, and nothing of it has happened; or, with `fatal`, the session ended with it.
[[nodiscard]] store::postgres::reply refused(std::string state,
                                             std::string words,
                                             bool fatal = false);

}  // namespace dibs::simulation::postgres
