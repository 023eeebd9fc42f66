// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/schema.hpp"

#include "store/sqlite/sql.hpp"
#include "store/sqlite/statement.hpp"

#include <dibs/error.hpp>

#include <cstdint>

namespace dibs::store::sqlite {

namespace {

/// A commit writes, and sums up, each page that it touches, and records are small. Instructions of
/// a lone step with 4096, 2048 and 1024 bytes: 24.9 k, 22.6 k, 21.4 k; µs of CPU of a renewal among
/// 20,000 in no order: 5.1, 4.4, 5.2.
constexpr int page_bytes = 2048;

struct header {
    std::int64_t application = 0;
    std::int64_t version = 0;
    std::int64_t objects = 0;
};

int read_number(sqlite3* db, const char* query, std::int64_t& value) {
    statement asked;
    if (const int code = asked.prepare(db, query); code != SQLITE_OK) {
        return code;
    }
    const int code = asked.step();
    value = code == SQLITE_ROW ? asked.integer(0) : 0;
    return code == SQLITE_ROW ? SQLITE_OK : code;
}

int exec(sqlite3* db, const std::string& text) {
    return sqlite3_exec(db, text.c_str(), nullptr, nullptr, nullptr);
}

// In one transaction: somebody may be making the tables right now.
int read_header(sqlite3* db, header& found) {
    const bool own = sqlite3_get_autocommit(db) != 0;
    int code = own ? exec(db, "BEGIN") : SQLITE_OK;
    if (code == SQLITE_OK) {
        code = read_number(db, "SELECT count(*) FROM sqlite_schema", found.objects);
    }
    if (code == SQLITE_OK) {
        code = read_number(db, "PRAGMA application_id", found.application);
    }
    if (code == SQLITE_OK) {
        code = read_number(db, "PRAGMA user_version", found.version);
    }
    if (own && sqlite3_get_autocommit(db) == 0) {
        const int ended = exec(db, "COMMIT");
        code = code == SQLITE_OK ? ended : code;
    }
    return code;
}

bool is_store(const header& found) {
    return found.application == sql::application_id;
}

bool is_empty(const header& found) {
    return found.application == 0 && found.version == 0 && found.objects == 0;
}

bool is_older(const header& found) {
    return is_store(found) && found.version < sql::schema_version;
}

failure judge(const header& found, const std::string& path) {
    if (is_store(found) && found.version > sql::schema_version) {
        return {errc::newer_format,
                shown_path(path) + ": written by a newer release (schema " +
                    std::to_string(found.version) + ", this one knows " +
                    std::to_string(sql::schema_version) + "); update dibs on this host"};
    }
    if (!is_store(found) && !is_empty(found)) {
        return {errc::store_damaged,
                shown_path(path) +
                    ": a database of another program; dibs needs a file of its own, name "
                    "another path"};
    }
    return {};
}

// The switch to WAL asks for the file alone and does not always call the busy handler, so that two
// processes that make the same store at once must try again.
int enter_wal(sqlite3* db) {
    constexpr int tries = 200;
    int code = SQLITE_OK;
    for (int at = 0; at < tries; ++at) {
        std::int64_t ignored = 0;
        code = read_number(db, "PRAGMA journal_mode = WAL", ignored);
        if ((code & 0xff) != SQLITE_BUSY) {
            break;
        }
        sqlite3_sleep(5);
    }
    return code;
}

/// Makes the tables, or those that a file of an earlier release lacks.
int complete(sqlite3* db) {
    if (const int code = exec(db, "PRAGMA synchronous = FULL; BEGIN IMMEDIATE");
        code != SQLITE_OK) {
        return code;
    }
    header found;
    int code = read_header(db, found);
    const bool fresh = is_empty(found);
    if (code == SQLITE_OK && (fresh || is_older(found))) {
        code = fresh ? exec(db, std::string{sql::create}) : SQLITE_OK;
        code = code == SQLITE_OK ? exec(db, std::string{sql::add_queues}) : code;
        if (code == SQLITE_OK) {
            code = exec(db,
                        "PRAGMA application_id = " + std::to_string(sql::application_id) +
                            "; PRAGMA user_version = " + std::to_string(sql::schema_version));
        }
    }
    if (code == SQLITE_OK) {
        code = exec(db, "COMMIT");
    }
    if (sqlite3_get_autocommit(db) == 0) {
        exec(db, "ROLLBACK");
    }
    return code;
}

}  // namespace

failure ensure_schema(sqlite3* db, const std::string& path, bool make) {
    const std::string doing = shown_path(path) + ": cannot be opened";
    header found;
    if (const int code = read_header(db, found); code != SQLITE_OK) {
        return translate(db, code, doing);
    }
    if (auto wrong = judge(found, path); wrong) {
        return wrong;
    }
    if (is_empty(found) && !make) {
        return nothing_there(path);
    }
    if (sqlite3_db_readonly(db, "main") == 1) {
        return {errc::permission_denied,
                shown_path(path) + ": the file is read-only; give this user the right to write it"};
    }
    if (is_empty(found)) {
        // Before anything is written; without effect once there is something.
        if (const int code = exec(db, "PRAGMA page_size = " + std::to_string(page_bytes));
            code != SQLITE_OK) {
            return translate(db, code, doing);
        }
    }
    if (const int code = enter_wal(db); code != SQLITE_OK) {
        return translate(db, code, doing);
    }
    if (is_empty(found) || is_older(found)) {
        if (const int code = complete(db); code != SQLITE_OK) {
            return translate(db, code, shown_path(path) + ": cannot be made a store");
        }
        if (const int code = read_header(db, found); code != SQLITE_OK) {
            return translate(db, code, doing);
        }
        if (auto wrong = judge(found, path); wrong) {
            return wrong;
        }
    }
    if (!is_store(found)) {
        return {errc::store_damaged, shown_path(path) + ": not a dibs store"};
    }
    return {};
}

}  // namespace dibs::store::sqlite
