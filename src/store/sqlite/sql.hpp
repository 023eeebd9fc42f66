// SPDX-License-Identifier: Apache-2.0
#pragma once
// Every statement of the store, with its arguments (?1, ?2, ...) and its result columns. Units: µs
// everywhere. `lease` columns are on the clock that decides expiry and mean something within their
// boot alone; `wall` columns are microseconds since 1970; 9223372036854775807 there means "for
// ever".

#include <cstdint>
#include <string_view>

namespace dibs::store::sqlite::sql {

using namespace std::string_view_literals;

/// "dibs" in ASCII. Kept in the header of the file, so that no other program's database is taken
/// for a store.
inline constexpr std::int32_t application_id = 0x64696273;
/// Kept in the header of the file; a newer one is refused.
inline constexpr int schema_version = 2;

/// Bits of record.parts: what of a record lies in other tables.
inline constexpr std::int64_t part_result = 1;
inline constexpr std::int64_t part_hold = 2;
inline constexpr std::int64_t part_more_grants = 4;

/// The tables. One grant lies in the record's own row, since nearly every record has one holder at
/// most; with the fence it is a blob of one length, so that a step can write it in place.
inline constexpr auto create = R"sql(
CREATE TABLE record (
    id          INTEGER PRIMARY KEY,
    key         TEXT    NOT NULL UNIQUE,   -- compared byte by byte
    format      INTEGER NOT NULL,          -- of this row; a newer one is refused, alone
    revoked     INTEGER NOT NULL,          -- the last fence that an operator ended
    capacity    INTEGER NOT NULL,
    parts       INTEGER NOT NULL,          -- 1 result, 2 hold, 4 further grants
    waiting     INTEGER NOT NULL,          -- rows of waiter
    state       BLOB    NOT NULL           -- fence and first grant: see row_state.hpp
);
CREATE TABLE further_grant (
    record      INTEGER NOT NULL,
    holder      BLOB    NOT NULL,
    first       INTEGER NOT NULL,
    last        INTEGER NOT NULL,
    weight      INTEGER NOT NULL,
    attached    INTEGER NOT NULL,
    granted     INTEGER NOT NULL,
    expires     INTEGER NOT NULL,
    boot        INTEGER NOT NULL,
    process     INTEGER NOT NULL,
    PRIMARY KEY (record, holder)
) WITHOUT ROWID;
CREATE TABLE result (
    record      INTEGER PRIMARY KEY,
    value       BLOB    NOT NULL,
    fence       INTEGER NOT NULL,
    is_mark     INTEGER NOT NULL,
    written     INTEGER NOT NULL,          -- wall, µs
    fresh_until INTEGER NOT NULL,          -- wall, µs
    keep_until  INTEGER NOT NULL           -- wall, µs
);
CREATE TABLE hold (
    record      INTEGER PRIMARY KEY,
    until       INTEGER NOT NULL,          -- wall, µs
    reason      TEXT    NOT NULL
);
CREATE TABLE boot (
    number      INTEGER PRIMARY KEY AUTOINCREMENT,
    id          TEXT    NOT NULL UNIQUE    -- of the kernel
);
CREATE TABLE process (
    number      INTEGER PRIMARY KEY AUTOINCREMENT,
    id          BLOB    NOT NULL,          -- names its files in the folder of holders
    boot        INTEGER NOT NULL,
    host        TEXT    NOT NULL,
    pid         INTEGER NOT NULL,
    user        TEXT    NOT NULL,
    command     TEXT    NOT NULL,
    started     INTEGER NOT NULL,          -- wall, µs
    detached    INTEGER NOT NULL,          -- 1: it gave detached grants, which outlive it
    gone        INTEGER                    -- wall, µs: found dead; kept to tell who gave the detached grants
);
CREATE TABLE waiter (
    number      INTEGER PRIMARY KEY,       -- ascending: the oldest is woken first
    record      INTEGER NOT NULL,
    process     INTEGER NOT NULL
);
CREATE INDEX waiter_of_record ON waiter(record);
CREATE INDEX waiter_of_process ON waiter(process);
CREATE TRIGGER waiter_comes AFTER INSERT ON waiter BEGIN
    UPDATE record SET waiting = waiting + 1 WHERE id = new.record;
END;
CREATE TRIGGER waiter_leaves AFTER DELETE ON waiter BEGIN
    UPDATE record SET waiting = max(waiting - 1, 0) WHERE id = old.record;
END;
)sql"sv;

/// What version 2 adds to version 1: the queues. Part of a new store, too.
inline constexpr auto add_queues = R"sql(
ALTER TABLE record ADD COLUMN queued INTEGER NOT NULL DEFAULT 0;   -- rows of ticket
CREATE TABLE ticket (
    number      INTEGER PRIMARY KEY,       -- ascending: the order of arrival
    record      INTEGER NOT NULL,
    holder      BLOB    NOT NULL,
    process     INTEGER NOT NULL,
    entered     INTEGER NOT NULL,          -- lease, µs
    until       INTEGER NOT NULL           -- lease, µs
);
CREATE INDEX ticket_of_record ON ticket(record);
CREATE UNIQUE INDEX ticket_of_holder ON ticket(record, holder);
CREATE INDEX ticket_of_process ON ticket(process);
CREATE TRIGGER ticket_comes AFTER INSERT ON ticket BEGIN
    UPDATE record SET queued = queued + 1 WHERE id = new.record;
END;
CREATE TRIGGER ticket_leaves AFTER DELETE ON ticket BEGIN
    UPDATE record SET queued = max(queued - 1, 0) WHERE id = old.record;
END;
)sql"sv;

// --- records -------------------------------------------------------------------------------------

/// The columns that records.cpp reads, in this order.
#define DIBS_RECORD_COLUMNS "id, key, format, revoked, capacity, parts, waiting, state, queued"

/// ?1 key
inline constexpr auto find_record = "SELECT " DIBS_RECORD_COLUMNS " FROM record WHERE key = ?1"sv;
/// ?1 id
inline constexpr auto read_record = "SELECT " DIBS_RECORD_COLUMNS " FROM record WHERE id = ?1"sv;
/// ?1 prefix, ?2 after. The caller stops at the first key without the prefix.
inline constexpr auto list_records =
    "SELECT " DIBS_RECORD_COLUMNS " FROM record WHERE key >= ?1 AND key > ?2 ORDER BY key"sv;
/// ?1 above this id, ?2 rows at most
inline constexpr auto scan_records =
    "SELECT " DIBS_RECORD_COLUMNS " FROM record WHERE id > ?1 ORDER BY id LIMIT ?2"sv;
/// -> the largest id, or 0
inline constexpr auto last_record = "SELECT coalesce(max(id), 0) FROM record"sv;
/// -> the largest fence of all records, in hexadecimal
inline constexpr auto largest_fence =
    "SELECT coalesce(max(hex(substr(state, 1, 8))), '0') FROM record"sv;
/// ?1 key, ?2 format, ?3 revoked, ?4 capacity, ?5 parts, ?6 state
inline constexpr auto insert_record =
    "INSERT INTO record (key, format, waiting, revoked, capacity, parts, state) "
    "VALUES (?1, ?2, 0, ?3, ?4, ?5, ?6)"sv;
/// ?1 id, then as insert_record
inline constexpr auto update_record =
    "UPDATE record SET format = ?2, revoked = ?3, capacity = ?4, parts = ?5, state = ?6 "
    "WHERE id = ?1"sv;
/// ?1 id, ?2 state
inline constexpr auto update_state = "UPDATE record SET state = ?2 WHERE id = ?1"sv;
/// ?1 id
inline constexpr auto delete_record = "DELETE FROM record WHERE id = ?1"sv;

/// ?1 record -> holder, first, last, weight, attached, granted, expires, boot, process
inline constexpr auto read_grants =
    "SELECT holder, first, last, weight, attached, granted, expires, boot, process "
    "FROM further_grant WHERE record = ?1 ORDER BY first"sv;
/// ?1 record, ?2 holder, ?3 first, ?4 last, ?5 weight, ?6 attached, ?7 granted, ?8 expires, ?9
/// boot, ?10 process
inline constexpr auto write_grant =
    "INSERT OR REPLACE INTO further_grant VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"sv;
/// ?1 record, ?2 holder
inline constexpr auto delete_grant =
    "DELETE FROM further_grant WHERE record = ?1 AND holder = ?2"sv;

/// ?1 record -> value, fence, is_mark, written, fresh_until, keep_until
inline constexpr auto read_result =
    "SELECT value, fence, is_mark, written, fresh_until, keep_until "
    "FROM result WHERE record = ?1"sv;
/// ?1 record, ?2 value, ?3 fence, ?4 is_mark, ?5 written, ?6 fresh_until, ?7 keep_until
inline constexpr auto write_result =
    "INSERT OR REPLACE INTO result VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"sv;
/// ?1 record
inline constexpr auto delete_result = "DELETE FROM result WHERE record = ?1"sv;

/// ?1 record -> until, reason
inline constexpr auto read_hold = "SELECT until, reason FROM hold WHERE record = ?1"sv;
/// ?1 record, ?2 until, ?3 reason
inline constexpr auto write_hold = "INSERT OR REPLACE INTO hold VALUES (?1, ?2, ?3)"sv;
/// ?1 record
inline constexpr auto delete_hold = "DELETE FROM hold WHERE record = ?1"sv;

// --- processes -----------------------------------------------------------------------------------

/// ?1 id of the kernel's boot -> number
inline constexpr auto find_boot = "SELECT number FROM boot WHERE id = ?1"sv;
/// ?1 id of the kernel's boot
inline constexpr auto insert_boot = "INSERT INTO boot (id) VALUES (?1)"sv;

/// ?1 id, ?2 boot, ?3 host, ?4 pid, ?5 user, ?6 command, ?7 started
inline constexpr auto insert_process =
    "INSERT INTO process (id, boot, host, pid, user, command, started, detached) "
    "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0)"sv;
/// ?1 number -> id, boot, host, pid, user, command, gone
inline constexpr auto find_process =
    "SELECT id, boot, host, pid, user, command, gone FROM process WHERE number = ?1"sv;
/// ?1 id -> number (no index: asked for files that nobody should have left behind)
inline constexpr auto find_process_id = "SELECT number FROM process WHERE id = ?1"sv;
/// ?1 above this number, ?2 rows at most -> number, id, boot, gone
inline constexpr auto scan_processes =
    "SELECT number, id, boot, gone FROM process WHERE number > ?1 ORDER BY number LIMIT ?2"sv;
/// -> the largest number, or 0
inline constexpr auto last_process = "SELECT coalesce(max(number), 0) FROM process"sv;
/// ?1 number
inline constexpr auto mark_detached = "UPDATE process SET detached = 1 WHERE number = ?1"sv;
/// ?1 number, ?2 wall: a process that gave detached grants stays known for people
inline constexpr auto mark_gone =
    "UPDATE process SET gone = ?2 WHERE number = ?1 AND detached = 1 AND gone IS NULL"sv;
/// ?1 number
inline constexpr auto delete_process = "DELETE FROM process WHERE number = ?1 AND detached = 0"sv;
/// ?1 number
inline constexpr auto forget_process = "DELETE FROM process WHERE number = ?1"sv;

// --- waiters -------------------------------------------------------------------------------------

/// ?1 record, ?2 process
inline constexpr auto insert_waiter = "INSERT INTO waiter (record, process) VALUES (?1, ?2)"sv;
/// ?1 number
inline constexpr auto delete_waiter = "DELETE FROM waiter WHERE number = ?1"sv;
/// ?1 record, ?2 process
inline constexpr auto delete_waiter_of = "DELETE FROM waiter WHERE record = ?1 AND process = ?2"sv;
/// ?1 process
inline constexpr auto delete_waiters_of_process = "DELETE FROM waiter WHERE process = ?1"sv;
/// ?1 record, ?2 above this number, ?3 rows at most -> number, process; the oldest first
inline constexpr auto waiters_after =
    "SELECT number, process FROM waiter WHERE record = ?1 AND number > ?2 "
    "ORDER BY number LIMIT ?3"sv;
/// ?1 record, ?2 below this number -> number, process
inline constexpr auto waiter_before =
    "SELECT number, process FROM waiter WHERE record = ?1 AND number < ?2 "
    "ORDER BY number DESC LIMIT 1"sv;

// --- queues --------------------------------------------------------------------------------------

/// The columns that tickets.cpp reads, in this order.
#define DIBS_TICKET_COLUMNS "number, holder, process, entered, until"

/// ?1 record, ?2 holder, ?3 process, ?4 entered, ?5 until
inline constexpr auto insert_ticket =
    "INSERT INTO ticket (record, holder, process, entered, until) "
    "VALUES (?1, ?2, ?3, ?4, ?5)"sv;
/// ?1 number, ?2 until, ?3 process
inline constexpr auto prolong_ticket =
    "UPDATE ticket SET until = ?2, process = ?3 WHERE number = ?1"sv;
/// ?1 number
inline constexpr auto delete_ticket = "DELETE FROM ticket WHERE number = ?1"sv;
/// ?1 record, ?2 holder
inline constexpr auto delete_ticket_of_holder =
    "DELETE FROM ticket WHERE record = ?1 AND holder = ?2"sv;
/// ?1 record, ?2 process
inline constexpr auto delete_tickets_of = "DELETE FROM ticket WHERE record = ?1 AND process = ?2"sv;
/// ?1 process
inline constexpr auto delete_tickets_of_process = "DELETE FROM ticket WHERE process = ?1"sv;
/// ?1 record -> the oldest
inline constexpr auto first_ticket =
    "SELECT " DIBS_TICKET_COLUMNS
    " FROM ticket INDEXED BY ticket_of_record WHERE record = ?1 ORDER BY number LIMIT 1"sv;
/// ?1 record, ?2 holder
inline constexpr auto find_ticket =
    "SELECT " DIBS_TICKET_COLUMNS " FROM ticket WHERE record = ?1 AND holder = ?2"sv;
/// ?1 record, ?2 number, ?3 lease, ?4 rows at most -> how many come before it
inline constexpr auto tickets_before =
    "SELECT count(*) FROM (SELECT 1 FROM ticket INDEXED BY ticket_of_record "
    "WHERE record = ?1 AND number < ?2 AND until > ?3 LIMIT ?4)"sv;
/// ?1 record
inline constexpr auto list_tickets =
    "SELECT " DIBS_TICKET_COLUMNS
    " FROM ticket INDEXED BY ticket_of_record WHERE record = ?1 ORDER BY number"sv;

}  // namespace dibs::store::sqlite::sql
