// SPDX-License-Identifier: Apache-2.0
#pragma once
// The rows in which the functions of schema.sql and advisory/session.sql answer.

#include <cstdint>

namespace dibs::store::postgres {

/// Columns of lease_execute_1.
enum answer_column : int {
    o_what,
    o_code,
    o_now,
    o_first,
    o_last,
    o_expires,
    o_retry,
    o_ticket,
    o_position,
    o_value,
    o_value_fence,
    o_value_mark,
    o_value_written,
    o_value_fresh_until,
    o_value_keep_until,
    o_holders,
    o_reason,
    o_waiters,
    o_entry,
    o_entries,
    o_firsts,
    o_lasts,
    column_count
};

/// Columns of acquire_one.sql.
enum acquired_column : int { a_now, a_first, a_last, a_late, acquired_column_count };
/// Columns of release_one.sql.
enum released_column : int { r_now, r_waiters, released_column_count };

/// Columns of step_some.sql.
enum some_column : int { s_entry, s_now, s_first, s_last, s_waited_for, some_column_count };

/// Columns of advisory/release_one.sql; those of advisory/acquire_one.sql are as above.
enum let_go_column : int { g_now, g_waiters, g_was_held, let_go_column_count };

/// Columns of advisory/step_some.sql.
enum kept_column : int {
    k_now,
    k_entries,
    k_firsts,
    k_lasts,
    k_waited_for,
    k_not_held,
    k_given_back,
    kept_column_count
};

/// Columns of lease_list_1.
enum list_column : int {
    l_key,
    l_now,
    l_fence,
    l_capacity,
    l_holders,
    l_waiters,
    l_queued,
    l_queue,
    l_value,
    l_value_fence,
    l_value_mark,
    l_value_written,
    l_value_fresh_until,
    l_value_keep_until,
    l_blocked_until,
    l_reason,
    list_column_count
};

// What o_what says beside a verdict.
constexpr std::int64_t said_locked = 50;  ///< another transaction has the row: ask again, alone
constexpr std::int64_t said_waited_for =
    51;  ///< a row of its own: somebody waits for the entry's key
constexpr std::int64_t said_not_held = 52;  ///< the lock of the entry was not held

}  // namespace dibs::store::postgres
