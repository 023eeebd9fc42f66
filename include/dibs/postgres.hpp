// SPDX-License-Identifier: Apache-2.0
#pragma once
// The data layer on PostgreSQL, for programs that hold a `PGconn*` of libpq. A lock keeps two from
// the same work; these keep a late one, or one that knows of no lock, from the data. The same is
// there as SQL functions for any language: `dibs guard install` (docs/guides/stale-writes.md).
//
// Each call is one transaction: on a connection without one it begins it and commits it. Inside of
// the caller's own it takes part, and the caller commits or rolls back.
//
// Thread safety: as libpq: one thread at a time per connection.

#include <dibs/error.hpp>
#include <dibs/lease.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

// As <libpq-fe.h> declares them, which is not needed here.
typedef struct pg_conn PGconn;

namespace dibs::postgres {

/// A row: its columns, as PostgreSQL writes them as text; nothing stands for NULL.
using fields = std::map<std::string, std::optional<std::string>, std::less<>>;

struct result {
    std::vector<fields> rows;
    std::int64_t changed = 0;  ///< rows written, or returned
};

/// One statement, `$1` and so on for the parameters.
/// Errors: dibs::error; `fenced_off` when a protected table refused a stale fence, `store_busy` when
/// it may be tried again, `outcome_unknown` when the connection was lost outside of a transaction.
result execute(PGconn* connection,
               const std::string& sql,
               const std::vector<std::optional<std::string>>& parameters = {});

/// `SELECT … FROM table WHERE column = value`; a table may be named with its schema.
struct row_name {
    std::string table;
    std::string column;
    std::string value;
};

// ------------------------------------------------------------------------------------------ fences

struct fence_options {
    /// For another's transaction with the same key, which may stand still. 0: not at all.
    std::chrono::milliseconds wait{10'000};
    std::string_view schema = "dibs";  ///< where `dibs guard install` put the functions
};

/// Claims the key with the fence, calls `work`, and commits: all that it writes counts as written
/// under the fence, in protected tables and in others. Once it is committed, no older fence is let
/// in. Whatever `work` throws rolls back, and comes out of here.
/// Requires: `dibs guard install`.
/// Errors: dibs::error; `fenced_off`: a newer fence was here, and nothing was written: stop;
/// `store_busy`: the wait was over, and nothing was written; `outcome_unknown`: the connection was
/// lost at the commit.
void fenced(PGconn* connection,
            std::string_view key,
            std::uint64_t fence,
            const std::function<void()>& work,
            const fence_options& options = {});

/// The same with the key and the fence of a lease. Errors: also a loss of the lease, before anything
/// is sent.
void fenced(PGconn* connection,
            const lease& held,
            const std::function<void()>& work,
            const fence_options& options = {});

// -------------------------------------------------------------------------------------------- rows

/// How update_versioned goes about conflicts.
struct retry_options {
    int attempts = 8;    ///< reads at most; at least 1
    int lock_after = 4;  ///< after so many conflicts the row is locked first, so that a slow writer
                         ///< is not overtaken for ever; 0: never
    std::chrono::milliseconds pause{2};        ///< after the first conflict; doubles, with jitter
    std::chrono::milliseconds pause_max{250};  ///< no pause is longer
    std::chrono::milliseconds within{
        10'000};  ///< no attempt is begun later, no lock awaited longer
};

struct versioned_result {
    std::int64_t version = 0;  ///< what it is now
    int attempts = 0;
};

/// Reads a row, lets `change` make of it the columns that are to be written, and writes them if
/// nobody changed the row meanwhile; else it reads anew. Empty: there is no such row.
/// `change` may be called several times; it returns nothing to write nothing, and must not touch the
/// row itself. The table needs a column `version bigint NOT NULL` that every writer raises;
/// `dibs.versioned(table)` makes one that rises by itself.
/// A conflict that the server itself finds (40001, 40P01) is one like another; in a transaction of the
/// caller's it is an error, since all of that has to be done again.
/// Errors: dibs::error; `store_busy`: somebody was first each time (nothing was written);
/// `cancelled`; what `change` throws.
[[nodiscard]] std::optional<versioned_result> update_versioned(
    PGconn* connection,
    const row_name& row,
    const std::function<fields(const fields& now)>& change,
    const retry_options& options = {},
    std::stop_token stop = {});

enum class locked { done, busy, no_row };

/// Calls `work` while nobody else can change the row, and commits. `busy`: others had it for longer
/// than `wait`; 0: at once.
[[nodiscard]] locked with_row_lock(PGconn* connection,
                                   const row_name& row,
                                   std::chrono::milliseconds wait,
                                   const std::function<void(const fields& now)>& work);

struct taken {
    enum class outcome { taken, too_little, no_row };
    outcome how = outcome::no_row;
    std::int64_t remaining = 0;  ///< what is there now
};

/// Takes `amount` out of an integer column, if that much is there: never below zero.
/// Errors: dibs::error; `invalid_argument`: several rows have that value, or what is there is no
/// integer; nothing was taken.
[[nodiscard]] taken take(PGconn* connection,
                         const row_name& row,
                         const std::string& column,
                         std::int64_t amount);

// ------------------------------------------------------------------------------------------- locks

/// Whether the name is this transaction's now, until its end. Requires: a transaction of the
/// caller's. The number of a name is documented at dibs.lock_number(), so other languages share it.
[[nodiscard]] bool try_xact_lock(PGconn* connection, std::string_view name);

/// The same, asking again for as long as `wait`. It waits here and not in a statement; but CREATE
/// INDEX CONCURRENTLY may still wait for the end of this transaction.
[[nodiscard]] bool xact_lock(PGconn* connection,
                             std::string_view name,
                             std::chrono::milliseconds wait,
                             std::stop_token stop = {});

/// Calls `work` while the name is this transaction's, and commits. False: somebody else had it for
/// longer than `wait`. Whoever waits here without a transaction holds up nobody, neither VACUUM nor
/// CREATE INDEX CONCURRENTLY: each attempt is a transaction of its own. Protects what `work` writes through this connection. What it does elsewhere
/// is not undone when the connection is lost, nor kept from others from then on.
[[nodiscard]] bool with_xact_lock(PGconn* connection,
                                  std::string_view name,
                                  std::chrono::milliseconds wait,
                                  const std::function<void()>& work,
                                  std::stop_token stop = {});

// ---------------------------------------------------------------------------------------- requests

struct request_options {
    std::chrono::seconds keep{std::chrono::hours{7 * 24}};  ///< how long the answer is replayed
    std::chrono::milliseconds wait{0};  ///< for another who is at the same request
    std::string_view schema = "dibs";   ///< where `dibs guard install` put the functions
};

struct request_result {
    enum class outcome {
        done,      ///< `work` was called, and is committed with its answer
        replayed,  ///< it had been done; this is what was answered then
        in_flight  ///< somebody else is at it; nothing was done
    };
    outcome how = outcome::in_flight;
    std::string answer;
};

/// Does the work of a request once, however often it comes: what `work` writes through this
/// connection is committed together with what it returns.
/// Requires: `dibs guard install`, and EXECUTE as dibs.allow() grants it.
/// Key and payload are text (UTF-8 without zero bytes), the key of up to 1024 bytes.
/// Errors: dibs::error; `invalid_argument`: the key was used for another payload, or key or payload
/// are no text or too long (nothing was done); what `work` throws.
[[nodiscard]] request_result idempotent(PGconn* connection,
                                        std::string_view key,
                                        std::string_view payload,
                                        const std::function<std::string()>& work,
                                        const request_options& options = {});

}  // namespace dibs::postgres
