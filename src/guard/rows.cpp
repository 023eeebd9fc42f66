// SPDX-License-Identifier: Apache-2.0
#include "guard/patience.hpp"
#include "guard/talk.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <limits>

namespace dibs::postgres {

namespace {

/// The names of a row, as SQL.
struct place {
    std::string table;
    std::string column;

    place(PGconn* connection, const row_name& row)
        : table(guard::quoted_name(connection, row.table)),
          column(guard::quoted_column(connection, row.column)) {}

    [[nodiscard]] std::string where() const { return " WHERE " + column + " = $1"; }
    /// For changes: where several rows have the value, none.
    [[nodiscard]] std::string where_alone() const {
        return where() + " AND (SELECT count(*) FROM (SELECT 1 FROM " + table + where() +
               " LIMIT 2) AS named) = 1";
    }
};

/// The one row there is, if any.
std::optional<fields> only(result&& found, const row_name& row) {
    if (found.rows.size() > 1) {
        throw error(make_error_code(errc::invalid_argument),
                    row.table + " has several rows with " + row.column + " = " + row.value +
                        "; nothing was changed");
    }
    return found.rows.empty() ? std::nullopt : std::optional{std::move(found.rows.front())};
}

std::int64_t number(const fields& row, const std::string& column) {
    const auto at = row.find(column);
    std::int64_t value = 0;
    if (at != row.end() && at->second) {
        const auto& text = *at->second;
        const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (fault == std::errc{} && end == text.data() + text.size()) {
            return value;
        }
    }
    throw error(make_error_code(errc::invalid_argument),
                "column \"" + column + "\" is missing, NULL or no integer");
}

/// What the server takes: 24 days.
constexpr std::chrono::milliseconds lock_timeout_max{std::numeric_limits<std::int32_t>::max()};

/// The row, locked; nothing: there is none. Errors: `store_busy` after `wait`.
std::optional<fields> lock(PGconn* connection,
                           const place& at,
                           const row_name& row,
                           std::chrono::milliseconds wait) {
    using std::chrono::milliseconds;
    const auto before = *execute(connection, "SHOW lock_timeout").rows.at(0).at("lock_timeout");
    // 0 would be no limit; and NOWAIT alone waits still for whoever has the version of a row that was
    // committed a moment ago.
    const auto patience = std::clamp(wait, milliseconds{1}, lock_timeout_max);
    (void)execute(connection,
                  "SELECT pg_catalog.set_config('lock_timeout', $1, true)",
                  {std::to_string(patience.count()) + "ms"});
    auto found = execute(connection,
                         "SELECT * FROM " + at.table + at.where() + " FOR UPDATE" +
                             (wait <= milliseconds{0} ? " NOWAIT" : ""),
                         {row.value});
    (void)execute(connection, "SELECT pg_catalog.set_config('lock_timeout', $1, true)", {before});
    return only(std::move(found), row);
}

/// Whether the statement that threw this met another transaction, and may be tried again: nothing was
/// written.
bool is_conflict(const error& thrown) {
    const auto& state = guard::last_state();
    return thrown.code() == errc::store_busy && (state == "40001" || state == "40P01");
}

/// The new version; nothing: somebody was first.
std::optional<std::int64_t> write(PGconn* connection,
                                  const place& at,
                                  const row_name& row,
                                  const fields& changes,
                                  std::int64_t version) {
    std::vector<std::optional<std::string>> parameters{row.value, std::to_string(version)};
    std::string sql = "UPDATE " + at.table + " SET ";
    for (const auto& [column, value] : changes) {
        parameters.push_back(value);
        sql += guard::quoted_column(connection, column) + " = $" +
               std::to_string(parameters.size()) + ", ";
    }
    const auto told = execute(
        connection,
        sql + "version = version + 1" + at.where_alone() + " AND version = $2 RETURNING version",
        parameters);
    return told.rows.empty() ? std::nullopt : std::optional{number(told.rows.front(), "version")};
}

}  // namespace

std::optional<versioned_result> update_versioned(PGconn* connection,
                                                 const row_name& row,
                                                 const std::function<fields(const fields&)>& change,
                                                 const retry_options& options,
                                                 std::stop_token stop) {
    if (options.attempts < 1) {
        throw error(make_error_code(errc::invalid_argument), "attempts is at least 1");
    }
    const place at(connection, row);
    guard::patience pauses(options.pause, options.pause_max, options.within);
    bool in_change = false;
    const auto attempt_at =
        [&](int attempt, std::optional<fields>& now, std::optional<std::int64_t>& written) {
            const auto once = [&] {
                const auto version = number(*now, "version");
                in_change = true;
                const auto changes = change(*now);
                in_change = false;
                written = changes.empty() ? version : write(connection, at, row, changes, version);
            };
            if (options.lock_after > 0 && attempt > options.lock_after) {
                guard::in_transaction(connection, [&] {
                    now = lock(connection, at, row, pauses.left());
                    if (now) {
                        once();
                    }
                    return written.has_value();
                });
            } else {
                now = only(execute(connection,
                                   "SELECT * FROM " + at.table + at.where() + " LIMIT 2",
                                   {row.value}),
                           row);
                if (now) {
                    once();
                }
            }
        };
    for (int attempt = 1;; ++attempt) {
        std::optional<fields> now;
        std::optional<std::int64_t> written;
        bool there = true;
        try {
            attempt_at(attempt, now, written);
            there = now.has_value();
        } catch (const error& thrown) {
            // Where sessions begin in REPEATABLE READ, that is how the server tells of whoever was
            // first. A transaction of the caller's has failed by it.
            if (in_change || guard::has_transaction(connection) || !is_conflict(thrown)) {
                throw;
            }
            written.reset();
        }
        if (!there) {
            return std::nullopt;
        }
        if (written) {
            return versioned_result{*written, attempt};
        }
        if (attempt >= options.attempts || !pauses.pause(stop)) {
            throw error(make_error_code(errc::store_busy),
                        row.table + " " + row.column + " = " + row.value +
                            " was changed by others in each of " + std::to_string(attempt) +
                            " attempts; nothing was written");
        }
    }
}

locked with_row_lock(PGconn* connection,
                     const row_name& row,
                     std::chrono::milliseconds wait,
                     const std::function<void(const fields&)>& work) {
    const place at(connection, row);
    auto outcome = locked::busy;
    bool at_work = false;
    try {
        guard::in_transaction(connection, [&] {
            const auto now = lock(connection, at, row, wait);
            outcome = now ? locked::done : locked::no_row;
            if (now) {
                at_work = true;
                work(*now);
            }
            return now.has_value();
        });
    } catch (const error&) {
        // In a transaction of the caller's it has failed, which is no plain "busy".
        if (at_work || guard::last_state() != "55P03" || guard::has_transaction(connection)) {
            throw;
        }
        return locked::busy;
    }
    return outcome;
}

taken take(PGconn* connection,
           const row_name& row,
           const std::string& column,
           std::int64_t amount) {
    if (amount < 1) {
        throw error(make_error_code(errc::invalid_argument), "the amount is larger than 0");
    }
    const place at(connection, row);
    const auto name = guard::quoted_column(connection, column);
    // Whoever has parts of a whole is left alone: what would remain is told as an integer.
    const auto enough = "CASE WHEN " + name + " >= $2::bigint THEN (" + name +
                        " - $2::bigint)::bigint = " + name + " - $2::bigint END";
    while (true) {
        const auto told = execute(connection,
                                  "UPDATE " + at.table + " SET " + name + " = " + name +
                                      " - $2::bigint" + at.where_alone() + " AND " + enough +
                                      " RETURNING " + name + "::bigint AS remaining",
                                  {row.value, std::to_string(amount)});
        if (!told.rows.empty()) {
            return {taken::outcome::taken, number(told.rows.front(), "remaining")};
        }
        const auto there =
            only(execute(connection,
                         "SELECT coalesce(" + name + ", 0) AS whole, coalesce(" + name +
                             ", 0)::bigint AS remaining, coalesce(" + name + "::bigint = " + name +
                             ", true) AS exact FROM " + at.table + at.where() + " LIMIT 2",
                         {row.value}),
                 row);
        if (!there) {
            return {taken::outcome::no_row, 0};
        }
        if (there->at("exact") != "t") {
            throw error(make_error_code(errc::invalid_argument),
                        "column \"" + column + "\" is " + there->at("whole").value_or("NULL") +
                            ", no integer; nothing was taken");
        }
        // More than enough: somebody brought it between the two statements.
        if (const auto remaining = number(*there, "remaining"); remaining < amount) {
            return {taken::outcome::too_little, remaining};
        }
    }
}

}  // namespace dibs::postgres
