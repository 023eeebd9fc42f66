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
    const std::pair<statement*, std::string_view> all[] = {{&find_, sql::find_record},
                                                           {&read_, sql::read_record},
                                                           {&list_, sql::list_records},
                                                           {&scan_, sql::scan_records},
                                                           {&last_, sql::last_record},
                                                           {&insert_, sql::insert_record},
                                                           {&update_, sql::update_record},
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
    const resetting guard{find_};
    find_.bind(1, key);
    const int code = find_.step();
    return code == SQLITE_ROW ? read_row(find_, now, gone, found)
                              : (code == SQLITE_DONE ? SQLITE_OK : code);
}

int records::find(std::int64_t id,
                  core::store_now now,
                  const gone_query& gone,
                  found_record& found) {
    const resetting guard{read_};
    read_.bind(1, id);
    const int code = read_.step();
    return code == SQLITE_ROW ? read_row(read_, now, gone, found)
                              : (code == SQLITE_DONE ? SQLITE_OK : code);
}

std::int64_t records::last() {
    const resetting guard{last_};
    return last_.step() == SQLITE_ROW ? last_.integer(0) : 0;
}

core::grant records::grant_at(statement& row,
                              int column,
                              core::store_now now,
                              found_record& found) {
    core::grant one;
    const auto holder = row.text(column);
    std::memcpy(
        one.holder.bytes.data(), holder.data(), std::min(holder.size(), one.holder.bytes.size()));
    one.fences = {row.number(column + 1), row.number(column + 2)};
    one.weight = static_cast<std::uint32_t>(row.integer(column + 3));
    one.attached =
        row.integer(column + 4) != 0 ? core::attachment::attached : core::attachment::detached;
    one.granted = lease_time(row.integer(column + 5));
    one.expires = lease_time(row.integer(column + 6));
    one.process = row.number(column + 8);
    if (const auto boot = row.integer(column + 7); boot != boot_) {
        // Its clock means nothing any more. As a trace it ages from the start of this boot; the
        // order of the two instants is kept, because the rules tell by it who ended the grant.
        found.was.other_boots.emplace_back(one.holder, boot);
        const bool ended = one.expires < one.granted;
        one.granted = std::min(now.lease, lease_time(1));
        one.expires = one.granted - core::microseconds{ended ? 1 : 0};
        one.dead = true;
    }
    return one;
}

int records::read_row(statement& row,
                      core::store_now now,
                      const gone_query& gone,
                      found_record& found) {
    found.id = row.integer(0);
    found.format = static_cast<std::uint32_t>(row.integer(2));
    found.waiting = row.integer(7);
    if (!found.readable()) {
        return SQLITE_OK;  // a newer release may have given the other columns another meaning
    }
    auto& kept = found.kept;
    kept.fence = row.number(3);
    kept.revoked = row.number(4);
    kept.capacity = static_cast<std::uint32_t>(row.integer(5));
    found.was.parts = row.integer(6);
    if (!row.null(8)) {
        kept.grants.push_back(grant_at(row, 8, now, found));
    }
    if (found.was.parts != 0) {
        if (const int code = read_parts(now, found); code != SQLITE_OK) {
            return code;
        }
    }
    for (auto& one : kept.grants) {
        one.dead = one.dead || (one.attached == core::attachment::attached &&
                                now.lease < one.expires && gone(one.process));
    }
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
            kept.grants.push_back(grant_at(grants_, 0, now, found));
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

void records::bind_grant(statement& row, int at, const core::grant& one, const found_record& of) {
    row.bind(at, std::span<const std::byte>{one.holder.bytes});
    row.bind(at + 1, one.fences.first);
    row.bind(at + 2, one.fences.last);
    row.bind(at + 3, std::int64_t{one.weight});
    row.bind(at + 4, std::int64_t{one.attached == core::attachment::attached ? 1 : 0});
    row.bind(at + 5, micros(one.granted));
    row.bind(at + 6, micros(one.expires));
    const auto other = std::find_if(of.was.other_boots.begin(),
                                    of.was.other_boots.end(),
                                    [&](const auto& dead) { return dead.first == one.holder; });
    const bool still_dead = one.dead && other != of.was.other_boots.end();
    row.bind(at + 7, still_dead ? other->second : boot_);
    row.bind(at + 8, one.process);
}

int records::save(std::string_view key, found_record& changed) {
    const auto parts = (changed.kept.result ? sql::part_result : 0) |
                       (has_hold(changed.kept) ? sql::part_hold : 0) |
                       (changed.kept.grants.size() > 1 ? sql::part_more_grants : 0);
    if (const int code = save_row(key, parts, changed); code != SQLITE_OK) {
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

int records::save_row(std::string_view key, std::int64_t parts, found_record& changed) {
    const bool is_new = changed.id == 0;
    auto& row = is_new ? insert_ : update_;
    const resetting guard{row};
    if (is_new) {
        row.bind(1, key);
    } else {
        row.bind(1, changed.id);
    }
    row.bind(2, std::int64_t{core::record_format});
    row.bind(3, changed.kept.fence);
    row.bind(4, changed.kept.revoked);
    row.bind(5, std::int64_t{changed.kept.capacity});
    row.bind(6, parts);
    if (changed.kept.grants.empty()) {
        for (int at = 7; at <= 15; ++at) {
            row.bind_null(at);
        }
    } else {
        bind_grant(row, 7, changed.kept.grants.front(), changed);
    }
    if (const int code = row.step(); code != SQLITE_DONE) {
        return code;
    }
    if (is_new) {
        changed.id = sqlite3_last_insert_rowid(db_);
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
            bind_grant(write_grant_, 2, *one, changed);
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
