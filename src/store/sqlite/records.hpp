// SPDX-License-Identifier: Apache-2.0
#pragma once
// Records as rows: reads one whole, writes back what changed of it. Decides nothing.
// Thread safety: none; the database guards it.

#include "core/record.hpp"
#include "store/sqlite/statement.hpp"

#include <sqlite3.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace dibs::store::sqlite {

/// Tells whether the process of this number is surely gone.
using gone_query = std::function<bool(std::uint64_t process)>;

/// A record as it was found, and the copy that the rules change.
struct found_record {
    std::int64_t id = 0;  ///< 0: not in the file
    std::uint32_t format = core::record_format;
    std::int64_t waiting = 0;
    core::record kept;

    /// What must be known of the stored state to write back the difference alone.
    struct before {
        std::int64_t parts = 0;
        std::vector<core::grant> further;
        std::optional<std::size_t> result;  ///< a digest
        core::wall_instant blocked_until{};
        /// Grants of another boot of this host: dead, and written back as such.
        std::vector<std::pair<core::holder_id, std::int64_t>> other_boots;
    } was;

    [[nodiscard]] bool readable() const noexcept { return format <= core::record_format; }
};

class records {
  public:
    /// Requires: the tables are there. Returns an SQLite code.
    [[nodiscard]] int prepare(sqlite3* db) noexcept;

    /// The boot that this process runs in; before anything is read.
    void set_boot(std::int64_t number) noexcept { boot_ = number; }

    // These return an SQLite code. `gone` is asked for attached grants that have not expired at
    // `now`.
    [[nodiscard]] int find(std::string_view key,
                           core::store_now now,
                           const gone_query& gone,
                           found_record& found);
    [[nodiscard]] int find(std::int64_t id,
                           core::store_now now,
                           const gone_query& gone,
                           found_record& found);

    /// Whether `save` takes more than one statement, so that it must be fenced by a savepoint.
    [[nodiscard]] static bool needs_savepoint(const found_record& changed) noexcept;

    /// Writes what changed. Sets `id` of a new record.
    [[nodiscard]] int save(std::string_view key, found_record& changed);

    /// Calls `each(key, record)` in key order until it returns false.
    template <typename Each>
    [[nodiscard]] int list(std::string_view prefix,
                           std::string_view after,
                           core::store_now now,
                           const gone_query& gone,
                           Each each);

    /// Looks at up to `rows` records from `cursor` on and removes those for which `forget(record)`
    /// is true. Moves the cursor, to 0 after the last record.
    template <typename Forget>
    [[nodiscard]] int purge(std::int64_t& cursor,
                            std::int64_t rows,
                            core::store_now now,
                            const gone_query& gone,
                            Forget forget);

    /// The largest id, 0 when there is none or it cannot be read.
    [[nodiscard]] std::int64_t last();

  private:
    int read_row(statement& row, core::store_now now, const gone_query& gone, found_record& found);
    int read_parts(core::store_now now, found_record& found);
    core::grant grant_at(statement& row, int column, core::store_now now, found_record& found);
    void bind_grant(statement& row, int at, const core::grant& one, const found_record& of);
    int save_row(std::string_view key, std::int64_t parts, found_record& changed);
    int save_further(const found_record& changed);
    int save_result(const found_record& changed);
    int save_hold(const found_record& changed);

    sqlite3* db_ = nullptr;
    std::int64_t boot_ = 0;
    statement find_, read_, list_, scan_, last_;
    statement insert_, update_, delete_;
    statement grants_, write_grant_, delete_grant_;
    statement result_, write_result_, delete_result_;
    statement hold_, write_hold_, delete_hold_;
};

template <typename Each>
int records::list(std::string_view prefix,
                  std::string_view after,
                  core::store_now now,
                  const gone_query& gone,
                  Each each) {
    const resetting guard{list_};
    list_.bind(1, prefix);
    list_.bind(2, after);
    for (;;) {
        if (const int code = list_.step(); code != SQLITE_ROW) {
            return code == SQLITE_DONE ? SQLITE_OK : code;
        }
        found_record found;
        if (const int code = read_row(list_, now, gone, found); code != SQLITE_OK) {
            return code;
        }
        if (!each(list_.text(1), found)) {
            return SQLITE_OK;
        }
    }
}

template <typename Forget>
int records::purge(std::int64_t& cursor,
                   std::int64_t rows,
                   core::store_now now,
                   const gone_query& gone,
                   Forget forget) {
    std::vector<std::int64_t> idle;
    std::int64_t seen = 0;
    {
        const resetting guard{scan_};
        scan_.bind(1, cursor);
        scan_.bind(2, rows);
        int code = SQLITE_ROW;
        while ((code = scan_.step()) == SQLITE_ROW) {
            found_record found;
            if (const int read = read_row(scan_, now, gone, found); read != SQLITE_OK) {
                return read;
            }
            ++seen;
            cursor = found.id;
            if (forget(found)) {
                idle.push_back(found.id);
            }
        }
        if (code != SQLITE_DONE) {
            return code;
        }
    }
    if (seen < rows) {
        cursor = 0;
    }
    for (const auto id : idle) {
        for (auto* from : {&delete_result_, &delete_hold_, &delete_}) {
            from->bind(1, id);
            if (const int code = from->run(); code != SQLITE_OK) {
                return code;
            }
        }
    }
    return SQLITE_OK;
}

}  // namespace dibs::store::sqlite
