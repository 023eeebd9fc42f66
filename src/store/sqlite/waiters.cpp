// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/waiters.hpp"

#include "store/sqlite/sql.hpp"

#include <algorithm>

namespace dibs::store::sqlite {

namespace {

/// How many waiters a wake tries before it asks the file for more.
constexpr std::int64_t candidates_max = 8;

}  // namespace

bool room_left(const core::record& kept, core::store_now now) noexcept {
    std::uint64_t weight = 0;
    for (const auto& one : kept.grants) {
        weight += one.live(now) ? one.weight : 0;
    }
    return weight == 0 || weight < kept.capacity;
}

int waiters::prepare(sqlite3* db) noexcept {
    db_ = db;
    const std::pair<statement*, std::string_view> all[] = {{&insert_, sql::insert_waiter},
                                                           {&delete_, sql::delete_waiter},
                                                           {&delete_of_, sql::delete_waiter_of},
                                                           {&after_, sql::waiters_after},
                                                           {&before_, sql::waiter_before}};
    for (const auto& [made, text] : all) {
        if (const int code = made->prepare(db, text); code != SQLITE_OK) {
            return code;
        }
    }
    return SQLITE_OK;
}

int waiters::enter(std::string_view key, const found_record& of) {
    std::string name{key};
    if (mine_.contains(name)) {
        return SQLITE_OK;
    }
    insert_.bind(1, of.id);
    insert_.bind(2, who_.self());
    if (const int code = insert_.run(); code != SQLITE_OK) {
        return code;
    }
    const place taken{of.id, sqlite3_last_insert_rowid(db_)};
    undo_.emplace_back(name, place{});
    mine_.emplace(std::move(name), taken);
    return SQLITE_OK;
}

int waiters::leave(std::string_view key,
                   const found_record& of,
                   core::store_now now,
                   wake_order& next) {
    const auto mine = mine_.find(std::string{key});
    if (mine == mine_.end()) {
        return SQLITE_OK;
    }
    const auto left = mine->second;
    delete_.bind(1, left.number);
    if (const int code = delete_.run(); code != SQLITE_OK) {
        return code;
    }
    undo_.emplace_back(mine->first, left);
    mine_.erase(mine);

    if (room_left(of.kept, now)) {
        return oldest(left.record, next.candidates);
    }
    // The one behind looked out for this process. If this process holds the key now, it still does
    // the right thing.
    const bool holds =
        std::any_of(of.kept.grants.begin(), of.kept.grants.end(), [&](const core::grant& one) {
            return one.live(now) && one.process == who_.self();
        });
    return holds ? SQLITE_OK : after(left.record, left.number, 1, next.candidates);
}

bool waiters::waits(std::string_view key) const {
    return !mine_.empty() && mine_.contains(std::string{key});
}

int waiters::oldest(std::int64_t record, std::vector<peer>& found) {
    return after(record, 0, candidates_max, found);
}

int waiters::after(std::int64_t record,
                   std::int64_t number,
                   std::int64_t rows,
                   std::vector<peer>& found) {
    const resetting guard{after_};
    after_.bind(1, record);
    after_.bind(2, number);
    after_.bind(3, rows);
    int code = SQLITE_ROW;
    while ((code = after_.step()) == SQLITE_ROW) {
        const auto process = after_.number(1);
        const auto* id = who_.id_of(process);
        found.push_back({process, id != nullptr ? *id : process_id{}});
    }
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

int waiters::look(std::string_view key,
                  const found_record& of,
                  core::store_now now,
                  lookout& result) {
    const auto mine = mine_.find(std::string{key});
    if (mine == mine_.end()) {
        return SQLITE_OK;
    }
    result.key = key;
    for (;;) {
        std::int64_t number = 0;
        std::uint64_t process = 0;
        {
            const resetting guard{before_};
            before_.bind(1, mine->second.record);
            before_.bind(2, mine->second.number);
            const int code = before_.step();
            if (code == SQLITE_DONE) {
                break;
            }
            if (code != SQLITE_ROW) {
                return code;
            }
            number = before_.integer(0);
            process = before_.number(1);
        }
        const auto* id = who_.id_of(process);
        if (id != nullptr && !who_.gone(process)) {
            result.processes.push_back(*who_.id_of(process));
            return SQLITE_OK;
        }
        delete_.bind(1, number);
        if (const int code = delete_.run(); code != SQLITE_OK) {
            return code;
        }
    }
    for (const auto& one : of.kept.grants) {
        if (one.live(now) && one.attached == core::attachment::attached &&
            one.process != who_.self()) {
            if (const auto* id = who_.id_of(one.process); id != nullptr) {
                result.processes.push_back(*id);
            }
        }
    }
    return SQLITE_OK;
}

int waiters::remove(std::int64_t record, std::uint64_t process) {
    delete_of_.bind(1, record);
    delete_of_.bind(2, process);
    return delete_of_.run();
}

void waiters::settle(bool committed) {
    if (!committed) {
        for (auto last = undo_.rbegin(); last != undo_.rend(); ++last) {
            if (last->second.number == 0) {
                mine_.erase(last->first);
            } else {
                mine_.insert_or_assign(last->first, last->second);
            }
        }
    }
    undo_.clear();
}

}  // namespace dibs::store::sqlite
