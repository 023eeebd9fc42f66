// SPDX-License-Identifier: Apache-2.0
#pragma once
// The queues of records as rows: one ticket per waiter, in the order of arrival. A step costs
// O(log n), besides tickets whose time is over, each of which is removed once, and telling a
// position.
//
// Thread safety: none; the database guards it.

#include "core/record.hpp"
#include "core/verbs.hpp"
#include "store/record/rules.hpp"
#include "store/sqlite/processes.hpp"
#include "store/sqlite/statement.hpp"

#include <sqlite3.h>

#include <cstdint>
#include <optional>

namespace dibs::store::sqlite {

class tickets {
  public:
    explicit tickets(processes& who) : who_(who) {}

    // Those that return an int return an SQLite code, and run inside a transaction.
    [[nodiscard]] int prepare(sqlite3* db) noexcept;

    /// The oldest live ticket of a record. Removes those before it.
    [[nodiscard]] int head(std::int64_t record,
                           core::store_now now,
                           std::optional<core::ticket>& found);

    /// What the rules must know for a verb of this holder.
    [[nodiscard]] int look(std::int64_t record,
                           const core::holder_id& holder,
                           core::store_now now,
                           queue_sight& seen);

    /// Carries out what the rules have decided about the ticket of the verb's holder, and fills in
    /// the ticket of the answer.
    [[nodiscard]] int carry_out(std::int64_t record,
                                step& taken,
                                const core::verb& what,
                                const rules_context& context);

    /// Removes those of a process that cannot be reached.
    [[nodiscard]] int remove(std::int64_t record, std::uint64_t process);

    /// Fills in the queue of a listing. Changes nothing.
    [[nodiscard]] int describe(std::int64_t record,
                               core::record_info& shown,
                               const rules_context& context);

  private:
    [[nodiscard]] core::ticket read(statement& row) const;
    [[nodiscard]] int remove_number(std::uint64_t number);
    [[nodiscard]] int position(std::int64_t record,
                               std::uint64_t number,
                               core::store_now now,
                               std::uint32_t& found);

    processes& who_;
    sqlite3* db_ = nullptr;
    statement insert_, prolong_, delete_, delete_of_, delete_holder_;
    statement first_, find_, before_, list_;
};

}  // namespace dibs::store::sqlite
