// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/tickets.hpp"

#include "store/sqlite/sql.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>
#include <variant>

namespace dibs::store::sqlite {

namespace {

core::store_instant lease_time(std::int64_t micros) {
    return core::store_instant{core::microseconds{micros}};
}

std::int64_t micros(core::store_instant at) {
    return at.time_since_epoch().count();
}

}  // namespace

int tickets::prepare(sqlite3* db) noexcept {
    db_ = db;
    const std::pair<statement*, std::string_view> all[] = {
        {&insert_, sql::insert_ticket},
        {&prolong_, sql::prolong_ticket},
        {&delete_, sql::delete_ticket},
        {&delete_of_, sql::delete_tickets_of},
        {&delete_holder_, sql::delete_ticket_of_holder},
        {&first_, sql::first_ticket},
        {&find_, sql::find_ticket},
        {&before_, sql::tickets_before},
        {&list_, sql::list_tickets}};
    for (const auto& [made, text] : all) {
        if (const int code = made->prepare(db, text); code != SQLITE_OK) {
            return code;
        }
    }
    return SQLITE_OK;
}

core::ticket tickets::read(statement& row) const {
    core::ticket one;
    one.number = row.number(0);
    const auto holder = row.text(1);
    std::memcpy(
        one.holder.bytes.data(), holder.data(), std::min(holder.size(), one.holder.bytes.size()));
    one.process = row.number(2);
    one.entered = lease_time(row.integer(3));
    one.until = lease_time(row.integer(4));
    return one;
}

int tickets::remove_number(std::uint64_t number) {
    delete_.bind(1, number);
    return delete_.run();
}

int tickets::head(std::int64_t record, core::store_now now, std::optional<core::ticket>& found) {
    found.reset();
    for (;;) {
        core::ticket first;
        {
            const resetting guard{first_};
            first_.bind(1, record);
            if (const int code = first_.step(); code != SQLITE_ROW) {
                return code == SQLITE_DONE ? SQLITE_OK : code;
            }
            first = read(first_);
        }
        // That of another boot is of a process that is gone: its times mean nothing here.
        first.dead = who_.gone(first.process);
        if (first.live(now)) {
            found = first;
            return SQLITE_OK;
        }
        if (const int code = remove_number(first.number); code != SQLITE_OK) {
            return code;
        }
    }
}

int tickets::look(std::int64_t record,
                  const core::holder_id& holder,
                  core::store_now now,
                  queue_sight& seen) {
    if (const int code = head(record, now, seen.head); code != SQLITE_OK || holder.empty()) {
        return code;
    }
    if (seen.head && seen.head->holder == holder) {
        seen.mine = seen.head;
        return SQLITE_OK;
    }
    core::ticket mine;
    {
        const resetting guard{find_};
        find_.bind(1, record);
        find_.bind(2, std::span<const std::byte>{holder.bytes});
        if (const int code = find_.step(); code != SQLITE_ROW) {
            return code == SQLITE_DONE ? SQLITE_OK : code;
        }
        mine = read(find_);
    }
    // Who comes back after its time was over has lost its place.
    if (!mine.live(now)) {
        return remove_number(mine.number);
    }
    seen.mine = mine;
    return SQLITE_OK;
}

int tickets::position(std::int64_t record,
                      std::uint64_t number,
                      core::store_now now,
                      std::uint32_t& found) {
    const resetting guard{before_};
    before_.bind(1, record);
    before_.bind(2, number);
    before_.bind(3, micros(now.lease));
    before_.bind(4, std::int64_t{core::position_exact});
    const int code = before_.step();
    found = code == SQLITE_ROW ? static_cast<std::uint32_t>(before_.integer(0)) + 1 : 0;
    return code == SQLITE_ROW ? SQLITE_OK : code;
}

int tickets::carry_out(std::int64_t record,
                       step& taken,
                       const core::verb& what,
                       const rules_context& context) {
    const auto holder = ticket_holder(what);
    if (taken.ticket == queue_step::leave) {
        delete_holder_.bind(1, record);
        delete_holder_.bind(2, std::span<const std::byte>{holder.bytes});
        return delete_holder_.run();
    }
    const auto now = context.now;
    const auto until = micros(now.lease + std::get<core::acquire>(what).queue);
    auto& number = taken.reply.ticket;
    if (taken.ticket == queue_step::enter) {
        insert_.bind(1, record);
        insert_.bind(2, std::span<const std::byte>{holder.bytes});
        insert_.bind(3, context.self);
        insert_.bind(4, micros(now.lease));
        insert_.bind(5, until);
        if (const int code = insert_.run(); code != SQLITE_OK) {
            return code;
        }
        number = static_cast<std::uint64_t>(sqlite3_last_insert_rowid(db_));
    } else {
        {
            const resetting guard{find_};
            find_.bind(1, record);
            find_.bind(2, std::span<const std::byte>{holder.bytes});
            if (const int code = find_.step(); code != SQLITE_ROW) {
                return code == SQLITE_DONE ? SQLITE_CORRUPT : code;
            }
            number = find_.number(0);
        }
        prolong_.bind(1, number);
        prolong_.bind(2, until);
        prolong_.bind(3, context.self);
        if (const int code = prolong_.run(); code != SQLITE_OK) {
            return code;
        }
    }
    return position(record, number, now, taken.reply.position);
}

int tickets::remove(std::int64_t record, std::uint64_t process) {
    delete_of_.bind(1, record);
    delete_of_.bind(2, process);
    return delete_of_.run();
}

int tickets::describe(std::int64_t record, core::record_info& shown, const rules_context& context) {
    const resetting guard{list_};
    list_.bind(1, record);
    int code = SQLITE_ROW;
    while ((code = list_.step()) == SQLITE_ROW) {
        const auto one = read(list_);
        if (one.live(context.now) && !who_.gone(one.process)) {
            ++shown.queued;
            if (shown.queue.size() < core::queue_shown) {
                shown.queue.push_back(store::describe(one, context));
            }
        }
    }
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

}  // namespace dibs::store::sqlite
