// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rows of plain records as this connection last read or wrote them, so that a step need not ask the
// file for what nobody can have changed since.
//
// A remembered row is as fresh as a page in SQLite's own cache, and by the same rule: everything is
// forgotten when the pager's data version is not what it was after this connection's last commit,
// that is, when another connection has committed. What this connection itself changes is told by
// its count of changed rows: a change that was not announced as one of a known key makes everything
// forgotten. A transaction that did not commit, too. So a path that nobody thought of costs time,
// not safety.
//
// Thread safety: none; the database guards it.

#include "store/sqlite/row_state.hpp"

#include <sqlite3.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace dibs::store::sqlite {

class record_cache {
  public:
    /// A record with nothing in other tables, and no grant of another boot.
    struct row {
        std::int64_t id = 0;
        std::int64_t waiting = 0;
        std::int64_t queued = 0;
        std::uint64_t revoked = 0;
        std::uint32_t capacity = 1;
        state_bytes state{};
    };

    void attach(sqlite3* db) noexcept { db_ = db; }

    /// The write lock was taken.
    void begin() {
        const auto now = version();
        if (!settled_ || now != version_) {
            clear();
        }
        settled_ = false;
    }
    /// The transaction has ended.
    void settle(bool committed) {
        if (!committed) {
            clear();
        }
        version_ = version();
        settled_ = committed && version_ != unreadable;
    }

    /// Null: ask the file. Lives until the next call of anything else.
    [[nodiscard]] const row* find(std::string_view key) {
        check();
        auto* const found = known(key);
        return found == nullptr ? nullptr : &found->second;
    }

    /// Forgets everything if this connection changed a row unannounced.
    void check() {
        if (sqlite3_total_changes(db_) != changes_) {
            clear();
        }
    }

    /// As it was read.
    void remember(std::string_view key, const row& found) {
        if (auto* const before = known(key); before != nullptr) {
            before->second = found;
            return;
        }
        if (rows_.size() >= rows_max) {
            rows_.clear();
        }
        latest_ = &*rows_.emplace(key, found).first;
    }

    // Announcements. Requires: `check` before the change, and that nothing but this key's record
    // was changed since.
    void wrote(std::string_view key, const row& written) {
        changes_ = sqlite3_total_changes(db_);
        remember(key, written);
    }
    void forget(std::string_view key) {
        changes_ = sqlite3_total_changes(db_);
        latest_ = nullptr;
        if (const auto gone = rows_.find(key); gone != rows_.end()) {
            rows_.erase(gone);
        }
    }

    void clear() {
        latest_ = nullptr;
        rows_.clear();
        changes_ = sqlite3_total_changes(db_);
    }

  private:
    /// So many fit into about 32 MiB. Beyond that the memory starts anew.
    static constexpr std::size_t rows_max = 131'072;
    static constexpr std::uint64_t unreadable = ~std::uint64_t{0};

    [[nodiscard]] std::uint64_t version() const noexcept {
        unsigned number = 0;
        const int code = sqlite3_file_control(db_, "main", SQLITE_FCNTL_DATA_VERSION, &number);
        return code == SQLITE_OK ? number : unreadable;
    }

    struct by_text {
        using is_transparent = void;
        std::size_t operator()(std::string_view key) const noexcept {
            return std::hash<std::string_view>{}(key);
        }
    };

    using rows = std::unordered_map<std::string, row, by_text, std::equal_to<>>;

    /// Null: not remembered. A step asks for the row of its key and then writes it.
    [[nodiscard]] rows::value_type* known(std::string_view key) {
        if (latest_ == nullptr || latest_->first != key) {
            const auto found = rows_.find(key);
            latest_ = found == rows_.end() ? nullptr : &*found;
        }
        return latest_;
    }

    sqlite3* db_ = nullptr;
    rows rows_;
    rows::value_type* latest_ = nullptr;  ///< of `rows_`: the one that was asked for last
    std::uint64_t version_ = unreadable;
    bool settled_ = false;
    int changes_ = 0;
};

}  // namespace dibs::store::sqlite
