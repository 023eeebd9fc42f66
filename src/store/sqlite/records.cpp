// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/records.hpp"

#include "store/sqlite/sql.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <utility>

namespace dibs::store::sqlite {

namespace {

// Of DIBS_RECORD_COLUMNS.
constexpr int column_format = 2;
constexpr int column_waiting = 6;
constexpr int column_state = 7;
constexpr int column_queued = 8;

core::store_instant lease_time(std::int64_t micros) {
    return core::store_instant{core::microseconds{micros}};
}

core::wall_instant wall_time(std::int64_t micros) {
    return core::wall_instant{core::microseconds{micros}};
}

template <typename Instant>
std::int64_t micros(Instant at) {
    return at.time_since_epoch().count();
}

std::size_t digest(const core::stored_result& of) {
    auto sum = std::hash<std::string_view>{}(of.value);
    const auto mix = [&](std::uint64_t value) {
        sum ^= std::hash<std::uint64_t>{}(value) + 0x9e3779b97f4a7c15U + (sum << 6) + (sum >> 2);
    };
    mix(of.fence);
    mix(of.is_mark ? 1 : 2);
    mix(static_cast<std::uint64_t>(micros(of.written)));
    mix(static_cast<std::uint64_t>(micros(of.fresh_until)));
    mix(static_cast<std::uint64_t>(micros(of.keep_until)));
    return sum;
}

bool same(const core::grant& left, const core::grant& right) {
    return left.holder == right.holder && left.fences == right.fences &&
           left.weight == right.weight && left.attached == right.attached &&
           left.granted == right.granted && left.expires == right.expires &&
           left.process == right.process;
}

bool result_changed(const found_record& of) {
    return of.kept.result ? !of.was.result || *of.was.result != digest(*of.kept.result)
                          : of.was.result.has_value();
}

bool has_hold(const core::record& kept) {
    return kept.blocked_until != core::wall_instant{} || !kept.blocked_reason.empty();
}

}  // namespace

int records::prepare(sqlite3* db) noexcept {
    db_ = db;
    cache_.attach(db);
    const std::pair<statement*, std::string_view> all[] = {{&find_, sql::find_record},
                                                           {&list_, sql::list_records},
                                                           {&scan_, sql::scan_records},
                                                           {&last_, sql::last_record},
                                                           {&insert_, sql::insert_record},
                                                           {&update_, sql::update_record},
                                                           {&update_state_, sql::update_state},
                                                           {&delete_, sql::delete_record},
                                                           {&grants_, sql::read_grants},
                                                           {&write_grant_, sql::write_grant},
                                                           {&delete_grant_, sql::delete_grant},
                                                           {&result_, sql::read_result},
                                                           {&write_result_, sql::write_result},
                                                           {&delete_result_, sql::delete_result},
                                                           {&hold_, sql::read_hold},
                                                           {&write_hold_, sql::write_hold},
                                                           {&delete_hold_, sql::delete_hold}};
    for (const auto& [made, text] : all) {
        if (const int code = made->prepare(db, text); code != SQLITE_OK) {
            return code;
        }
    }
    return SQLITE_OK;
}

int records::find(std::string_view key,
                  core::store_now now,
                  const gone_query& gone,
                  found_record& found) {
    cache_.check();
    if (const auto* known = cache_.find(key); known != nullptr) {
        recall(*known, now, found);
        mark_dead(found, now, gone);
        return SQLITE_OK;
    }
    const resetting guard{find_};
    find_.bind(1, key);
    int code = find_.step();
    if (code != SQLITE_ROW) {
        return code == SQLITE_DONE ? SQLITE_OK : code;
    }
    code = read_row(find_, now, gone, found);
    if (code == SQLITE_OK && found.plain()) {
        record_cache::row row{
            found.id, found.waiting, found.queued, found.kept.revoked, found.kept.capacity, {}};
        if (state_at(find_, row.state)) {
            cache_.remember(key, row);
        }
    }
    return code;
}

std::int64_t records::last() {
    const resetting guard{last_};
    return last_.step() == SQLITE_ROW ? last_.integer(0) : 0;
}

// A grant of another boot is dead: its clock means nothing any more. As a trace it ages from the
// start of this boot; the order of the two instants is kept, because the rules tell by it who ended
// the grant.
void records::void_other_boot(core::grant& one,
                              std::int64_t boot,
                              core::store_now now,
                              found_record& found) const {
    if (boot == boot_) {
        return;
    }
    found.was.other_boots.emplace_back(one.holder, boot);
    const bool ended = one.expires < one.granted;
    one.granted = std::min(now.lease, lease_time(1));
    one.expires = one.granted - core::microseconds{ended ? 1 : 0};
    one.dead = true;
}

core::grant records::further_at(statement& row, core::store_now now, found_record& found) {
    core::grant one;
    const auto holder = row.text(0);
    std::memcpy(
        one.holder.bytes.data(), holder.data(), std::min(holder.size(), one.holder.bytes.size()));
    one.fences = {row.number(1), row.number(2)};
    one.weight = static_cast<std::uint32_t>(row.integer(3));
    one.attached = row.integer(4) != 0 ? core::attachment::attached : core::attachment::detached;
    one.granted = lease_time(row.integer(5));
    one.expires = lease_time(row.integer(6));
    one.process = row.number(8);
    void_other_boot(one, row.integer(7), now, found);
    return one;
}

bool records::state_at(statement& row, state_bytes& state) {
    const auto stored = row.text(column_state);
    if (stored.size() != state.size()) {
        return false;
    }
    std::memcpy(state.data(), stored.data(), state.size());
    return true;
}

void records::take_state(const state_bytes& state, core::store_now now, found_record& found) {
    auto read = unpack(state);
    found.kept.fence = read.fence;
    if (read.held) {
        void_other_boot(read.first, read.boot, now, found);
        found.kept.grants.push_back(read.first);
    }
}

void records::recall(const record_cache::row& known, core::store_now now, found_record& found) {
    found.id = known.id;
    found.format = found.was.format = core::record_format;
    found.waiting = known.waiting;
    found.queued = known.queued;
    found.kept.revoked = found.was.revoked = known.revoked;
    found.kept.capacity = found.was.capacity = known.capacity;
    take_state(known.state, now, found);
}

void records::mark_dead(found_record& found, core::store_now now, const gone_query& gone) {
    for (auto& one : found.kept.grants) {
        one.dead = one.dead || (one.attached == core::attachment::attached &&
                                now.lease < one.expires && gone(one.process));
    }
}

bool records::perhaps_idle(statement& row, core::fence_number below) {
    state_bytes state;
    return row.integer(column_waiting) == 0 && row.integer(column_queued) == 0 &&
           static_cast<std::uint64_t>(row.integer(column_format)) <= core::record_format &&
           state_at(row, state) && unpack(state).fence < below;
}

int records::read_row(statement& row,
                      core::store_now now,
                      const gone_query& gone,
                      found_record& found) {
    found.id = row.integer(0);
    found.format = static_cast<std::uint32_t>(row.integer(column_format));
    found.waiting = row.integer(column_waiting);
    found.queued = row.integer(column_queued);
    if (!found.readable()) {
        return SQLITE_OK;  // a newer release may have given the other columns another meaning
    }
    state_bytes state;
    if (!state_at(row, state)) {
        return SQLITE_CORRUPT;
    }
    found.kept.revoked = row.number(3);
    found.kept.capacity = static_cast<std::uint32_t>(row.integer(4));
    found.was.format = found.format;
    found.was.revoked = found.kept.revoked;
    found.was.capacity = found.kept.capacity;
    found.was.parts = row.integer(5);
    take_state(state, now, found);
    if (found.was.parts != 0) {
        if (const int code = read_parts(now, found); code != SQLITE_OK) {
            return code;
        }
    }
    mark_dead(found, now, gone);
    return SQLITE_OK;
}

int records::read_parts(core::store_now now, found_record& found) {
    auto& kept = found.kept;
    if ((found.was.parts & sql::part_result) != 0) {
        const resetting guard{result_};
        result_.bind(1, found.id);
        const int code = result_.step();
        if (code == SQLITE_ROW) {
            auto& result = kept.result.emplace();
            result.value = result_.text(0);
            result.fence = result_.number(1);
            result.is_mark = result_.integer(2) != 0;
            result.written = wall_time(result_.integer(3));
            result.fresh_until = wall_time(result_.integer(4));
            result.keep_until = wall_time(result_.integer(5));
            found.was.result = digest(result);
        } else if (code != SQLITE_DONE) {
            return code;
        }
    }
    if ((found.was.parts & sql::part_hold) != 0) {
        const resetting guard{hold_};
        hold_.bind(1, found.id);
        const int code = hold_.step();
        if (code == SQLITE_ROW) {
            kept.blocked_until = wall_time(hold_.integer(0));
            kept.blocked_reason = hold_.text(1);
        } else if (code != SQLITE_DONE) {
            return code;
        }
    }
    if ((found.was.parts & sql::part_more_grants) != 0) {
        const resetting guard{grants_};
        grants_.bind(1, found.id);
        int code = SQLITE_ROW;
        while ((code = grants_.step()) == SQLITE_ROW) {
            kept.grants.push_back(further_at(grants_, now, found));
            found.was.further.push_back(kept.grants.back());
        }
        if (code != SQLITE_DONE) {
            return code;
        }
    }
    return SQLITE_OK;
}

bool records::needs_savepoint(const found_record& changed) noexcept {
    return changed.was.parts != 0 || changed.kept.grants.size() > 1 ||
           changed.kept.result.has_value() || has_hold(changed.kept);
}

std::int64_t records::boot_of(const core::grant& one, const found_record& of) const {
    if (!one.dead) {
        return boot_;
    }
    const auto other = std::find_if(of.was.other_boots.begin(),
                                    of.was.other_boots.end(),
                                    [&](const auto& dead) { return dead.first == one.holder; });
    return other != of.was.other_boots.end() ? other->second : boot_;
}

int records::save(std::string_view key, found_record& changed) {
    const auto& grants = changed.kept.grants;
    const auto parts = (changed.kept.result ? sql::part_result : 0) |
                       (has_hold(changed.kept) ? sql::part_hold : 0) |
                       (grants.size() > 1 ? sql::part_more_grants : 0);
    const auto state =
        grants.empty()
            ? pack(changed.kept.fence, nullptr, 0)
            : pack(changed.kept.fence, &grants.front(), boot_of(grants.front(), changed));
    cache_.check();
    const int code = save_all(key, parts, state, changed);
    if (code != SQLITE_OK) {
        cache_.clear();
    } else if (parts == 0 && changed.was.other_boots.empty()) {
        cache_.wrote(key,
                     {changed.id,
                      changed.waiting,
                      changed.queued,
                      changed.kept.revoked,
                      changed.kept.capacity,
                      state});
    } else {
        cache_.forget(key);
    }
    return code;
}

int records::save_all(std::string_view key,
                      std::int64_t parts,
                      const state_bytes& state,
                      found_record& changed) {
    if (const int code = save_row(key, parts, state, changed); code != SQLITE_OK) {
        return code;
    }
    if ((parts | changed.was.parts) == 0) {
        return SQLITE_OK;
    }
    if (const int code = save_further(changed); code != SQLITE_OK) {
        return code;
    }
    if (const int code = save_result(changed); code != SQLITE_OK) {
        return code;
    }
    return save_hold(changed);
}

int records::save_row(std::string_view key,
                      std::int64_t parts,
                      const state_bytes& state,
                      found_record& changed) {
    const auto& was = changed.was;
    if (changed.id != 0 && was.format == core::record_format && was.parts == parts &&
        was.revoked == changed.kept.revoked && was.capacity == changed.kept.capacity) {
        // In place costs as much as an UPDATE the first time, and next to nothing after that. What
        // is in a savepoint cannot be written so.
        if (many_ && !needs_savepoint(changed)) {
            return in_place_.write(db_, changed.id, state);
        }
        update_state_.bind(1, changed.id);
        update_state_.bind(2, std::span<const std::byte>{state});
        return update_state_.run();
    }
    const bool is_new = changed.id == 0;
    auto& row = is_new ? insert_ : update_;
    const resetting guard{row};
    if (is_new) {
        row.bind(1, key);
    } else {
        row.bind(1, changed.id);
    }
    row.bind(2, std::int64_t{core::record_format});
    row.bind(3, changed.kept.revoked);
    row.bind(4, std::int64_t{changed.kept.capacity});
    row.bind(5, parts);
    row.bind(6, std::span<const std::byte>{state});
    if (const int code = row.step(); code != SQLITE_DONE) {
        return code;
    }
    if (is_new) {
        changed.id = sqlite3_last_insert_rowid(db_);
        ++made_;
    }
    return SQLITE_OK;
}

int records::save_further(const found_record& changed) {
    const auto by_holder = [](const core::grant* left, const core::grant* right) {
        return left->holder < right->holder;
    };
    std::vector<const core::grant*> old;
    for (const auto& one : changed.was.further) {
        old.push_back(&one);
    }
    std::vector<const core::grant*> wanted;
    for (std::size_t at = 1; at < changed.kept.grants.size(); ++at) {
        wanted.push_back(&changed.kept.grants[at]);
    }
    std::sort(old.begin(), old.end(), by_holder);
    std::sort(wanted.begin(), wanted.end(), by_holder);
    for (const auto* one : old) {
        if (!std::binary_search(wanted.begin(), wanted.end(), one, by_holder)) {
            delete_grant_.bind(1, changed.id);
            delete_grant_.bind(2, std::span<const std::byte>{one->holder.bytes});
            if (const int code = delete_grant_.run(); code != SQLITE_OK) {
                return code;
            }
        }
    }
    for (const auto* one : wanted) {
        const auto match = std::lower_bound(old.begin(), old.end(), one, by_holder);
        if (match == old.end() || !same(**match, *one)) {
            write_grant_.bind(1, changed.id);
            write_grant_.bind(2, std::span<const std::byte>{one->holder.bytes});
            write_grant_.bind(3, one->fences.first);
            write_grant_.bind(4, one->fences.last);
            write_grant_.bind(5, std::int64_t{one->weight});
            write_grant_.bind(6, std::int64_t{one->attached == core::attachment::attached ? 1 : 0});
            write_grant_.bind(7, micros(one->granted));
            write_grant_.bind(8, micros(one->expires));
            write_grant_.bind(9, boot_of(*one, changed));
            write_grant_.bind(10, one->process);
            if (const int code = write_grant_.run(); code != SQLITE_OK) {
                return code;
            }
        }
    }
    return SQLITE_OK;
}

int records::save_result(const found_record& changed) {
    if (!result_changed(changed)) {
        return SQLITE_OK;
    }
    if (!changed.kept.result) {
        delete_result_.bind(1, changed.id);
        return delete_result_.run();
    }
    const auto& result = *changed.kept.result;
    write_result_.bind(1, changed.id);
    write_result_.bind(2, std::as_bytes(std::span{result.value}));
    write_result_.bind(3, result.fence);
    write_result_.bind(4, std::int64_t{result.is_mark ? 1 : 0});
    write_result_.bind(5, micros(result.written));
    write_result_.bind(6, micros(result.fresh_until));
    write_result_.bind(7, micros(result.keep_until));
    return write_result_.run();
}

int records::save_hold(const found_record& changed) {
    if (!has_hold(changed.kept)) {
        if ((changed.was.parts & sql::part_hold) == 0) {
            return SQLITE_OK;
        }
        delete_hold_.bind(1, changed.id);
        return delete_hold_.run();
    }
    write_hold_.bind(1, changed.id);
    write_hold_.bind(2, micros(changed.kept.blocked_until));
    write_hold_.bind(3, std::string_view{changed.kept.blocked_reason});
    return write_hold_.run();
}

}  // namespace dibs::store::sqlite
