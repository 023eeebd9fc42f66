// SPDX-License-Identifier: Apache-2.0
#pragma once
// Answers as the rows of lease_execute_1 (store/postgres/schema.sql).

#include "core/verbs.hpp"
#include "simulation/stores/postgres/rows.hpp"
#include "store/postgres/wire.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace dibs::simulation::postgres {

class answer_rows {
  public:
    explicit answer_rows(std::int64_t now_us);

    /// Entries count from 0.
    void locked(std::size_t entry);
    void waited_for(std::size_t entry);
    /// `capacity` is that of the key.
    void answer(std::size_t entry,
                const core::answer& given,
                std::uint32_t capacity,
                const std::vector<std::string>& holders);
    /// Granted, renewed or released the short way: one row for all of a kind.
    void answer_shortly(std::size_t entry, const core::answer& given);

    [[nodiscard]] store::postgres::result_ptr take();

  private:
    void begin(std::size_t entry);
    void failure(const core::answer& given, std::uint32_t capacity);
    void rest_of(const core::answer& given);

    const std::int64_t now_us_;
    rows told_;
    std::vector<std::size_t> waited_for_;
    std::map<std::int64_t, std::vector<std::pair<std::size_t, core::fence_block>>> short_ones_;
};

/// In the six columns from `first` on.
void write_result(rows& into, int first, const core::kept_result& kept, std::int64_t now_us);

}  // namespace dibs::simulation::postgres
