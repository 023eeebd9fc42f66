// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/processes.hpp"

#include "store/sqlite/sql.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string_view>
#include <utility>

namespace dibs::store::sqlite {

namespace {

/// How many other processes are remembered; beyond that the memory starts anew.
constexpr std::size_t known_max = 4096;

/// How long the name of a dead process that gave detached grants is kept. A longer lease is shown
/// without a name.
constexpr core::microseconds name_kept = std::chrono::hours{24 * 7};

process_id id_at(statement& row, int column) {
    process_id id;
    const auto bytes = row.text(column);
    std::memcpy(id.bytes.data(), bytes.data(), std::min(bytes.size(), id.bytes.size()));
    return id;
}

std::int64_t micros(core::wall_instant at) {
    return at.time_since_epoch().count();
}

}  // namespace

int processes::prepare(sqlite3* db) noexcept {
    db_ = db;
    const std::pair<statement*, std::string_view> all[] = {
        {&find_, sql::find_process},
        {&find_boot_, sql::find_boot},
        {&insert_boot_, sql::insert_boot},
        {&insert_, sql::insert_process},
        {&mark_detached_, sql::mark_detached},
        {&mark_gone_, sql::mark_gone},
        {&delete_, sql::delete_process},
        {&forget_, sql::forget_process},
        {&scan_, sql::scan_processes},
        {&last_, sql::last_process},
        {&find_id_, sql::find_process_id},
        {&delete_waiters_, sql::delete_waiters_of_process},
        {&delete_tickets_, sql::delete_tickets_of_process}};
    for (const auto& [made, text] : all) {
        if (const int code = made->prepare(db, text); code != SQLITE_OK) {
            return code;
        }
    }
    return SQLITE_OK;
}

int processes::enter_boot(std::string_view kernel_boot_id) {
    for (int attempt = 0; attempt < 2; ++attempt) {
        {
            const resetting guard{find_boot_};
            find_boot_.bind(1, kernel_boot_id);
            const int code = find_boot_.step();
            if (code == SQLITE_ROW) {
                boot_ = find_boot_.integer(0);
                return SQLITE_OK;
            }
            if (code != SQLITE_DONE) {
                return code;
            }
        }
        insert_boot_.bind(1, kernel_boot_id);
        if (const int code = insert_boot_.run();
            code != SQLITE_OK && (code & 0xff) != SQLITE_CONSTRAINT) {
            return code;
        }
    }
    return SQLITE_CORRUPT;
}

int processes::enrol(core::wall_instant now, failure& trouble) {
    if (self_ != 0) {
        return SQLITE_OK;
    }
    // Visible first: a row whose process nobody can see would be taken for alive until its leases
    // expire.
    if (trouble = world_.appear(); trouble) {
        return SQLITE_OK;
    }
    insert_.bind(1, std::span<const std::byte>{self_id_.bytes});
    insert_.bind(2, boot_);
    insert_.bind(3, std::string_view{self_who_.host});
    insert_.bind(4, self_who_.pid);
    insert_.bind(5, std::string_view{self_who_.user});
    insert_.bind(6, std::string_view{self_who_.command});
    insert_.bind(7, micros(now));
    if (const int code = insert_.run(); code != SQLITE_OK) {
        return code;
    }
    self_ = static_cast<std::uint64_t>(sqlite3_last_insert_rowid(db_));
    return SQLITE_OK;
}

void processes::settle(bool committed) noexcept {
    if (committed) {
        self_settled_ = self_ != 0;
        detached_settled_ = detached_;
        buried_.insert(buried_.end(), in_grave_.begin(), in_grave_.end());
    } else {
        self_ = self_settled_ ? self_ : 0;
        detached_ = detached_settled_;
    }
    in_grave_.clear();
}

int processes::note_detached() {
    if (detached_ || self_ == 0) {
        return SQLITE_OK;
    }
    mark_detached_.bind(1, self_);
    const int code = mark_detached_.run();
    detached_ = code == SQLITE_OK;
    return code;
}

const processes::known& processes::look_up(std::uint64_t process) const {
    if (const auto found = known_.find(process); found != known_.end()) {
        return found->second;
    }
    if (known_.size() >= known_max) {
        known_.clear();
    }
    auto& made = known_[process];
    const resetting guard{find_};
    find_.bind(1, process);
    if (const int code = find_.step(); code == SQLITE_ROW) {
        made.there = true;
        made.id = id_at(find_, 0);
        made.boot = find_.integer(1);
        made.who.host = find_.text(2);
        made.who.pid = find_.integer(3);
        made.who.user = find_.text(4);
        made.who.command = find_.text(5);
        made.gone = !find_.null(6);
    } else if (code != SQLITE_DONE) {
        // Not known is not dead: whoever cannot be read counts as alive, and is asked for again.
        known_.erase(process);
        static const known unreadable = [] {
            known alive;
            alive.there = true;
            alive.boot = -1;
            return alive;
        }();
        return unreadable;
    }
    return made;
}

bool processes::gone(std::uint64_t process) {
    if (process == self_ && self_ != 0) {
        return false;
    }
    const auto& one = look_up(process);
    if (!one.there || one.gone) {
        return true;
    }
    if (one.boot == -1) {
        return false;
    }
    if (one.boot != boot_ || world_.gone(one.id)) {
        known_[process].gone = true;
        dying_.push_back(process);
        return true;
    }
    return false;
}

const process_id* processes::id_of(std::uint64_t process) const {
    if (process == self_ && self_ != 0) {
        return &self_id_;
    }
    const auto& one = look_up(process);
    return one.there && one.boot != -1 ? &one.id : nullptr;
}

core::party processes::who(std::uint64_t process) const {
    return process == self_ && self_ != 0 ? self_who_ : look_up(process).who;
}

int processes::bury(core::wall_instant now) {
    while (!dying_.empty()) {
        const auto process = dying_.back();
        dying_.pop_back();
        in_grave_.push_back(look_up(process).id);
        mark_gone_.bind(1, process);
        mark_gone_.bind(2, micros(now));
        delete_.bind(1, process);
        delete_waiters_.bind(1, process);
        delete_tickets_.bind(1, process);
        for (auto* step : {&mark_gone_, &delete_, &delete_waiters_, &delete_tickets_}) {
            if (const int code = step->run(); code != SQLITE_OK) {
                return code;
            }
        }
    }
    return SQLITE_OK;
}

int processes::sweep(std::uint64_t random, std::int64_t rows, core::wall_instant now) {
    std::uint64_t last = 0;
    {
        const resetting guard{last_};
        if (const int code = last_.step(); code != SQLITE_ROW) {
            return code == SQLITE_DONE ? SQLITE_OK : code;
        }
        last = last_.number(0);
    }
    std::vector<std::uint64_t> nameless;
    {
        const resetting guard{scan_};
        scan_.bind(1, random % (last + 1));
        scan_.bind(2, rows);
        int code = SQLITE_ROW;
        while ((code = scan_.step()) == SQLITE_ROW) {
            const auto number = scan_.number(0);
            const bool other_boot = scan_.integer(2) != boot_;
            const bool told_long_enough =
                !scan_.null(3) && micros(now) - scan_.integer(3) > name_kept.count();
            if (other_boot || told_long_enough) {
                nameless.push_back(number);
            }
            if (scan_.null(3)) {
                static_cast<void>(gone(number));
            }
        }
        if (code != SQLITE_DONE) {
            return code;
        }
    }
    for (const auto number : nameless) {
        forget_.bind(1, number);
        if (const int code = forget_.run(); code != SQLITE_OK) {
            return code;
        }
    }
    return SQLITE_OK;
}

bool processes::unknown(const process_id& id) {
    const resetting guard{find_id_};
    find_id_.bind(1, std::span<const std::byte>{id.bytes});
    return find_id_.step() == SQLITE_DONE;
}

int processes::leave(bool everybody_gone, core::wall_instant now) {
    if (self_ == 0) {
        return SQLITE_OK;
    }
    delete_tickets_.bind(1, self_);
    if (const int code = delete_tickets_.run(); code != SQLITE_OK) {
        return code;
    }
    delete_waiters_.bind(1, self_);
    if (const int code = delete_waiters_.run(); code != SQLITE_OK || !everybody_gone) {
        return code;
    }
    mark_gone_.bind(1, self_);
    mark_gone_.bind(2, micros(now));
    delete_.bind(1, self_);
    for (auto* step : {&mark_gone_, &delete_}) {
        if (const int code = step->run(); code != SQLITE_OK) {
            return code;
        }
    }
    return SQLITE_OK;
}

}  // namespace dibs::store::sqlite
