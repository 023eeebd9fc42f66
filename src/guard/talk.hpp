// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the parts of the data layer say to libpq: statements, transactions, and errors as ours.

#include <dibs/postgres.hpp>

#include <libpq-fe.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace dibs::guard {

/// Errors: invalid_argument, for what is no name of a schema.
void check_schema(std::string_view name);

/// A name for SQL, `schema.table` included. Errors: invalid_argument.
[[nodiscard]] std::string quoted_name(PGconn* connection, const std::string& name);

/// One column's name. Errors: invalid_argument.
[[nodiscard]] std::string quoted_column(PGconn* connection, const std::string& name);

/// Several statements without parameters. Errors: that of the first that fails, after a rollback.
void run_script(PGconn* connection, const std::string& sql);

/// The SQLSTATE of the last error that execute() threw for this thread; empty after a lost
/// connection.
[[nodiscard]] const std::string& last_state();

/// What libpq said last, on one line.
[[nodiscard]] std::string last_message(const PGconn* connection);

/// Calls `work` in a transaction: the caller's if there is one, else one that is committed
/// afterwards unless `work` returns false.
/// Errors: those of `work`, after a rollback; `outcome_unknown` when the commit's answer is lost.
void in_transaction(PGconn* connection, const std::function<bool()>& work);

/// Whether the connection is inside of a transaction that the caller began.
[[nodiscard]] bool has_transaction(PGconn* connection);

/// Whether PostgreSQL takes it for text: UTF-8 without zero bytes.
[[nodiscard]] bool is_text(std::string_view given) noexcept;

}  // namespace dibs::guard
