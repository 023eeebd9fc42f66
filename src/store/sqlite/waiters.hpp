// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which processes wait for which key, in the order in which they came, and whom to wake when nobody
// stands in the queue (tickets.hpp).
//
// A release wakes the oldest waiter alone. A waiter that leaves passes that on. Each waiter keeps
// an eye on one other process: the oldest on the holders, everybody else on the waiter before it,
// so that a death anywhere wakes exactly one. With W waiters and G grants this costs O(W + G)
// transactions, not W times G.
//
// Thread safety: none; the database guards it.

#include "store/sqlite/processes.hpp"
#include "store/sqlite/records.hpp"
#include "store/sqlite/statement.hpp"

#include <sqlite3.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace dibs::store::sqlite {

struct peer {
    std::uint64_t process = 0;
    process_id id;
};

/// To be done once the transaction is committed: wake the first of these that can be reached.
struct wake_order {
    std::string key;
    std::vector<peer> candidates;  ///< the oldest waiter first
};

/// From now on, wake this process's waiters of the key when one of these processes dies.
struct lookout {
    std::string key;
    std::vector<process_id> processes;
};

/// Whether somebody may be let in beside those who hold the key.
[[nodiscard]] bool room_left(const core::record& kept, core::store_now now) noexcept;

class waiters {
  public:
    explicit waiters(processes& who) : who_(who) {}

    // Those that return an int return an SQLite code, and run inside a transaction.
    [[nodiscard]] int prepare(sqlite3* db) noexcept;

    /// This process waits for the record from now on. Requires: it has a row (processes::enrol).
    [[nodiscard]] int enter(std::string_view key, const found_record& of);

    /// It waits no more; `next` tells whom to wake instead, if anybody.
    [[nodiscard]] int leave(std::string_view key,
                            const found_record& of,
                            core::store_now now,
                            wake_order& next);

    [[nodiscard]] bool waits(std::string_view key) const;
    [[nodiscard]] bool nobody() const noexcept { return mine_.empty(); }

    /// The oldest waiters of a record.
    [[nodiscard]] int oldest(std::int64_t record, std::vector<peer>& found);

    /// What this process, which waits for the key, must look out for now.
    [[nodiscard]] int look(std::string_view key,
                           const found_record& of,
                           core::store_now now,
                           lookout& result);

    /// A waiter that cannot be reached waits no more.
    [[nodiscard]] int remove(std::int64_t record, std::uint64_t process);

    void settle(bool committed);

  private:
    struct place {
        std::int64_t record = 0;
        std::int64_t number = 0;
    };
    [[nodiscard]] int after(std::int64_t record,
                            std::int64_t number,
                            std::int64_t rows,
                            std::vector<peer>& found);

    processes& who_;
    sqlite3* db_ = nullptr;
    std::unordered_map<std::string, place> mine_;
    std::vector<std::pair<std::string, place>> undo_;  // number 0: was not there
    statement insert_, delete_, delete_of_, after_, before_;
};

}  // namespace dibs::store::sqlite
