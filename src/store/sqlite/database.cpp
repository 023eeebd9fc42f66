// SPDX-License-Identifier: Apache-2.0
// The connection: opened, its file watched, records listed, left. What a group of steps does stands in group.cpp, what
// each of them does in steps.cpp.
#include "store/sqlite/database.hpp"

#include "store/sqlite/codes.hpp"
#include "store/sqlite/schema.hpp"
#include "store/sqlite/sql.hpp"

#include <dibs/error.hpp>

#include <utility>

namespace dibs::store::sqlite {

namespace {

using core::microseconds;
using std::chrono::seconds;

/// Pauses between two tries for the write lock. SQLite's own handler grows them so much that a
/// process starves.
constexpr microseconds first_pause{50};
constexpr microseconds later_pause{500};
constexpr int first_pauses = 10;

constexpr auto open_wait = seconds{5};
constexpr auto list_wait = seconds{5};
constexpr auto leave_wait = core::milliseconds{100};

/// The path is looked at, whether it still leads to this file, before every grant, since whoever
/// moved the file may have let others in, and before every release, which tells the holder whether
/// it was protected to the end; before other steps only this often.
constexpr auto place_every = core::milliseconds{50};

/// A log of up to this size is left behind by the last process, which would have to sync the disk
/// twice to fold it into the file; the next one reads it in less than a millisecond.
constexpr sqlite3_int64 log_left_bytes = 1 << 20;

bool log_is_short(sqlite3* db) {
    sqlite3_file* log = nullptr;
    sqlite3_int64 bytes = 0;
    return sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) == SQLITE_OK &&
           log != nullptr && log->pMethods != nullptr &&
           log->pMethods->xFileSize(log, &bytes) == SQLITE_OK && bytes <= log_left_bytes;
}

}  // namespace

database::database(database_options options, surroundings& world)
    : options_(std::move(options)),
      world_(world),
      db_(nullptr, &sqlite3_close_v2),
      who_(world, options_.self, options_.who),
      waiters_(who_),
      tickets_(who_),
      gone_([this](std::uint64_t process) { return who_.gone(process); }) {}

database::~database() {
    if (db_ && log_is_short(db_.get())) {
        sqlite3_db_config(db_.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
    }
}

std::unique_ptr<database> database::open(database_options options,
                                         surroundings& world,
                                         failure& trouble) {
    std::unique_ptr<database> made{new database{std::move(options), world}};
    trouble = made->start();
    if (trouble) {
        made.reset();
    }
    return made;
}

failure database::start() {
    const auto& path = options_.path;
    const std::string doing = shown_path(path) + ": cannot be opened";
    sqlite3* raw = nullptr;
    // The file was made before (or is the simulator's): SQLite would make it readable by everybody.
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE |
                      SQLITE_OPEN_EXRESCODE | (options_.vfs.empty() ? 0 : SQLITE_OPEN_CREATE);
    int code = sqlite3_open_v2(
        path.c_str(), &raw, flags, options_.vfs.empty() ? nullptr : options_.vfs.c_str());
    db_.reset(raw);
    if (code != SQLITE_OK) {
        return translate(raw, code, doing);
    }
    busy_until_ = world_.now() + open_wait;
    sqlite3_busy_handler(raw, &database::on_busy, this);
    sqlite3_wal_autocheckpoint(raw, options_.fold_log_after);
    if (auto trouble = ensure_schema(raw, path, options_.make); trouble) {
        // A file that is not ours is left as it is, its log included.
        sqlite3_db_config(raw, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
        return trouble;
    }
    // The log is cut back after a long reader made it grow. The cache is an upper bound, used by
    // large stores alone.
    code = sqlite3_exec(raw,
                        "PRAGMA journal_size_limit = 16777216; PRAGMA cache_size = -16384; "
                        "PRAGMA temp_store = MEMORY",
                        nullptr,
                        nullptr,
                        nullptr);
    full_now_ = !options_.full;
    if (code == SQLITE_OK) {
        code = set_synchronous(options_.full);
    }
    const std::pair<statement*, std::string_view> all[] = {{&begin_, "BEGIN IMMEDIATE"},
                                                           {&begin_reading_, "BEGIN"},
                                                           {&commit_, "COMMIT"},
                                                           {&rollback_, "ROLLBACK"},
                                                           {&savepoint_, "SAVEPOINT step"},
                                                           {&undo_savepoint_, "ROLLBACK TO step"},
                                                           {&release_savepoint_, "RELEASE step"}};
    for (const auto& [made, text] : all) {
        code = code == SQLITE_OK ? made->prepare(raw, text) : code;
    }
    code = code == SQLITE_OK ? records_.prepare(raw) : code;
    code = code == SQLITE_OK ? who_.prepare(raw) : code;
    code = code == SQLITE_OK ? waiters_.prepare(raw) : code;
    code = code == SQLITE_OK ? tickets_.prepare(raw) : code;
    code = code == SQLITE_OK ? who_.enter_boot(options_.boot_id) : code;
    if (code != SQLITE_OK) {
        return explain(code, doing);
    }
    records_.set_boot(who_.boot());
    if (options_.vfs.empty()) {
        identity_ = identity_of(path);
        // SQLite compares the number of the file alone, which files on two disks may share.
        if (!identity_ || sqlite_has_moved()) {
            return explain(moved, {});
        }
        log_path_ = sqlite3_filename_wal(sqlite3_db_filename(raw, "main"));
        log_ = identity_of(log_path_);
    }
    return {};
}

int database::on_busy(void* self, int times) {
    auto& mine = *static_cast<database*>(self);
    if (mine.giving_up_.load(std::memory_order_relaxed) || mine.world_.now() >= mine.busy_until_) {
        return 0;
    }
    mine.world_.pause(times < first_pauses ? first_pause : later_pause);
    return 1;
}

int database::set_synchronous(bool full) {
    if (full == full_now_) {
        return SQLITE_OK;
    }
    const int code =
        sqlite3_exec(db_.get(),
                     full ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL",
                     nullptr,
                     nullptr,
                     nullptr);
    full_now_ = code == SQLITE_OK ? full : full_now_;
    return code;
}

failure database::explain(int code, std::string_view doing) const {
    if (giving_up_.load(std::memory_order_relaxed) && busy(code)) {
        return {errc::closed, "the store was closed"};
    }
    if (code == moved) {
        return {errc::store_unreachable,
                shown_path(options_.path) +
                    ": the file or its log was moved, removed or replaced while it was in use, so "
                    "others may "
                    "already work with another one at its path; open the store again"};
    }
    return translate(db_.get(), code, doing);
}

bool database::has_moved(bool look_now) {
    const auto now = world_.now();
    if (!look_now && now < place_due_) {
        return false;
    }
    bool displaced = identity_ ? identity_of(options_.path) != identity_ : sqlite_has_moved();
    // Whoever opens the file when its log is gone makes a new one, and neither sees what the other
    // writes. Not before every grant: a look costs as much as a tenth of one.
    if (!displaced && log_ && now >= log_due_) {
        displaced = identity_of(log_path_) != log_;
        log_due_ = displaced ? core::instant{} : now + place_every;
    }
    place_due_ = displaced ? core::instant{} : now + place_every;
    return displaced;
}

bool database::sqlite_has_moved() {
    int answer = 0;
    sqlite3_file_control(db_.get(), "main", SQLITE_FCNTL_HAS_MOVED, &answer);
    return answer != 0;
}

int database::commit(core::instant deadline) {
    records_.pause();
    for (;;) {
        const int code = commit_.run();
        if (!busy(code) || giving_up_.load(std::memory_order_relaxed) || world_.now() >= deadline) {
            return code;
        }
        world_.pause(later_pause);
    }
}

void database::undo() noexcept {
    records_.pause();
    if (sqlite3_get_autocommit(db_.get()) == 0) {
        static_cast<void>(rollback_.run());
    }
}

void database::list(const std::string& prefix,
                    const std::string& after,
                    std::size_t limit,
                    core::page& page) {
    busy_until_ = world_.now() + list_wait;
    std::size_t unreadable = 0;
    int code = has_moved(false) ? moved : begin_reading_.run();
    if (code == SQLITE_OK) {
        const auto now = world_.clock();
        const rules_context context{now, who_.self(), who_};
        int queues = SQLITE_OK;
        const auto add = [&](std::string_view key, const found_record& found) {
            if (!key.starts_with(prefix)) {
                return false;
            }
            if (page.records.size() == limit) {
                page.more = true;
                return false;
            }
            if (!found.readable()) {
                ++unreadable;
                return true;
            }
            page.records.push_back(describe(std::string{key}, found.kept, context));
            page.records.back().waiters = static_cast<std::uint32_t>(found.waiting);
            if (found.queued > 0) {
                queues = tickets_.describe(found.id, page.records.back(), context);
            }
            return queues == SQLITE_OK;
        };
        code = records_.list(prefix, after, now, gone_, add);
        code = code == SQLITE_OK ? queues : code;
    }
    if (code != SQLITE_OK) {
        auto why = explain(code, shown_path(options_.path) + ": cannot be read");
        page.error = why.error;
        page.detail = std::move(why.detail);
    } else if (unreadable != 0) {
        page.detail = std::to_string(unreadable) +
                      " records of a newer release were left out; update dibs on this host";
    }
    if (sqlite3_get_autocommit(db_.get()) == 0) {
        static_cast<void>(commit_.run());
        undo();
    }
}

bool database::leave(bool everybody_gone) {
    if (who_.self() == 0) {
        return true;
    }
    // What is taken away here would be found and taken away by others: no need to wait for the
    // disk.
    giving_up_.store(false, std::memory_order_relaxed);
    busy_until_ = world_.now() + leave_wait;
    int code = set_synchronous(false);
    code = code == SQLITE_OK ? begin_.run() : code;
    if (code != SQLITE_OK) {
        return false;
    }
    code = who_.leave(everybody_gone, world_.clock().wall);
    code = code == SQLITE_OK ? commit(busy_until_) : code;
    undo();
    return code == SQLITE_OK && everybody_gone;
}

}  // namespace dibs::store::sqlite
