// SPDX-License-Identifier: Apache-2.0
#pragma once
// Records as rows: reads one whole, writes back what changed of it. Decides nothing.
// Thread safety: none; the database guards it.

#include "core/record.hpp"
#include "store/sqlite/in_place.hpp"
#include "store/sqlite/record_cache.hpp"
#include "store/sqlite/row_state.hpp"
#include "store/sqlite/statement.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
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
    std::int64_t queued = 0;
    core::record kept;

    /// What must be known of the stored state to write back the difference alone.
    struct before {
        std::uint32_t format = 0;
        std::uint64_t revoked = 0;
        std::uint32_t capacity = 0;
        std::int64_t parts = 0;
        std::vector<core::grant> further;
        std::optional<std::size_t> result;  ///< a digest
        core::wall_instant blocked_until{};
        /// Grants of another boot of this host: dead, and written back as such.
        std::vector<std::pair<core::holder_id, std::int64_t>> other_boots;
    } was;

    /// As new, but with the memory that it has.
    void reset() {
        auto room = std::move(kept.grants);
        room.clear();
        *this = {};
        kept.grants = std::move(room);
    }

    [[nodiscard]] bool readable() const noexcept { return format <= core::record_format; }
    /// As it was found: in one row, of this release's format and this boot.
    [[nodiscard]] bool plain() const noexcept {
        return was.format == core::record_format && was.parts == 0 && was.other_boots.empty();
    }
};

class records {
  public:
    /// Requires: the tables are there. Returns an SQLite code.
    [[nodiscard]] int prepare(sqlite3* db) noexcept;

    /// The boot that this process runs in; before anything is read.
    void set_boot(std::int64_t number) noexcept { boot_ = number; }

    /// A transaction has begun and holds the write lock; `many`: of several steps.
    void begin(bool many) {
        cache_.begin();
        many_ = many;
    }
    /// Before COMMIT, SAVEPOINT and ROLLBACK: nothing is being written.
    void pause() noexcept { in_place_.close(); }
    /// The transaction has ended.
    void settle(bool committed) { cache_.settle(committed); }

    /// Since the record was found, nothing but its waiters or its queue changed in the file.
    void waiters_changed(std::string_view key) { cache_.forget(key); }
    /// What was saved last was undone.
    void forget(std::string_view key) { cache_.forget(key); }

    // These return an SQLite code. `gone` is asked for attached grants that have not expired at
    // `now`.
    [[nodiscard]] int find(std::string_view key,
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

    /// Looks at up to `rows` records from `cursor` on and removes those without waiters and
    /// queue whose last fence is below `below` and for which `forget(record)` is true. Moves the cursor, to 0 after
    /// the last record.
    template <typename Forget>
    [[nodiscard]] int purge(std::int64_t& cursor,
                            std::int64_t rows,
                            core::fence_number below,
                            core::store_now now,
                            const gone_query& gone,
                            Forget forget);

    /// How many records were made since it was asked last, those of undone transactions included.
    [[nodiscard]] std::size_t take_made() noexcept { return std::exchange(made_, 0); }

    /// The largest id, 0 when there is none or it cannot be read.
    [[nodiscard]] std::int64_t last();

  private:
    [[nodiscard]] static bool state_at(statement& row, state_bytes& state);
    /// A quick look before the whole record is read.
    [[nodiscard]] static bool perhaps_idle(statement& row, core::fence_number below);
    int read_row(statement& row, core::store_now now, const gone_query& gone, found_record& found);
    int read_parts(core::store_now now, found_record& found);
    void take_state(const state_bytes& state, core::store_now now, found_record& found);
    void recall(const record_cache::row& known, core::store_now now, found_record& found);
    static void mark_dead(found_record& found, core::store_now now, const gone_query& gone);
    core::grant further_at(statement& row, core::store_now now, found_record& found);
    void void_other_boot(core::grant& one,
                         std::int64_t boot,
                         core::store_now now,
                         found_record& found) const;
    [[nodiscard]] std::int64_t boot_of(const core::grant& one, const found_record& of) const;
    int save_row(std::string_view key,
                 std::int64_t parts,
                 const state_bytes& state,
                 found_record& changed);
    int save_all(std::string_view key,
                 std::int64_t parts,
                 const state_bytes& state,
                 found_record& changed);
    int save_further(const found_record& changed);
    int save_result(const found_record& changed);
    int save_hold(const found_record& changed);

    sqlite3* db_ = nullptr;
    std::int64_t boot_ = 0;
    bool many_ = false;
    std::size_t made_ = 0;
    record_cache cache_;
    in_place in_place_;
    statement find_, list_, scan_, last_;
    statement insert_, update_, update_state_, delete_;
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
    // The index is entered at the later of the two: otherwise each page walks over all before it.
    list_.bind(1, std::max(prefix, after));
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
                   core::fence_number below,
                   core::store_now now,
                   const gone_query& gone,
                   Forget forget) {
    cache_.check();
    std::vector<std::pair<std::int64_t, std::string>> idle;
    std::int64_t seen = 0;
    {
        const resetting guard{scan_};
        scan_.bind(1, cursor);
        scan_.bind(2, rows);
        int code = SQLITE_ROW;
        while ((code = scan_.step()) == SQLITE_ROW) {
            ++seen;
            cursor = scan_.integer(0);
            if (!perhaps_idle(scan_, below)) {
                continue;
            }
            found_record found;
            if (const int read = read_row(scan_, now, gone, found); read != SQLITE_OK) {
                return read;
            }
            if (found.readable() && forget(found)) {
                idle.emplace_back(found.id, scan_.text(1));
            }
        }
        if (code != SQLITE_DONE) {
            return code;
        }
    }
    if (seen < rows) {
        cursor = 0;
    }
    if (!idle.empty()) {
        pause();
    }
    for (const auto& [id, key] : idle) {
        for (auto* from : {&delete_result_, &delete_hold_, &delete_}) {
            from->bind(1, id);
            if (const int code = from->run(); code != SQLITE_OK) {
                return code;
            }
        }
        cache_.forget(key);
    }
    return SQLITE_OK;
}

}  // namespace dibs::store::sqlite
