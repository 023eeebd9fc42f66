// SPDX-License-Identifier: Apache-2.0
#include "guard/talk.hpp"

#include "guard/script.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace dibs::guard {

namespace {

using answer = std::unique_ptr<PGresult, decltype(&::PQclear)>;

thread_local std::string state_of_last_error;

errc meaning_of(std::string_view state) {
    if (state == "ZD001") {
        return errc::fenced_off;
    }
    if (state == "ZD006") {
        return errc::newer_format;
    }
    if (state == "ZD003" || state == "55P03" || state.starts_with("40") || state == "57014") {
        return errc::store_busy;
    }
    if (state == "42501" || state.starts_with("28")) {
        return errc::permission_denied;
    }
    if (state == "42883" || state == "3F000" || state == "0A000") {
        return errc::unsupported;
    }
    if (state.starts_with("22") || state.starts_with("23") || state.starts_with("42") ||
        state.starts_with("ZD")) {
        return errc::invalid_argument;
    }
    return errc::store_refused;
}

[[noreturn]] void fail(PGconn* connection, const PGresult* told, bool in_transaction) {
    const char* state = told == nullptr ? nullptr : ::PQresultErrorField(told, PG_DIAG_SQLSTATE);
    state_of_last_error = state == nullptr ? "" : state;
    if (::PQstatus(connection) != CONNECTION_OK || state_of_last_error.empty()) {
        // What was not committed is rolled back by the server; a statement on its own commits itself.
        const auto code = in_transaction ? errc::store_unreachable : errc::outcome_unknown;
        throw error(make_error_code(code), last_message(connection));
    }
    std::string text = ::PQresultErrorField(told, PG_DIAG_MESSAGE_PRIMARY);
    const char* hint = ::PQresultErrorField(told, PG_DIAG_MESSAGE_HINT);
    if (state_of_last_error == "42883" || state_of_last_error == "3F000") {
        text += "; is the data layer there? dibs guard install makes it";
    } else if (hint != nullptr) {
        text += std::string{" ("} + hint + ")";
    }
    throw error(make_error_code(meaning_of(state_of_last_error)), text);
}

answer send(PGconn* connection,
            const std::string& sql,
            const std::vector<std::optional<std::string>>& parameters) {
    const auto before = ::PQtransactionStatus(connection);
    if (before == PQTRANS_UNKNOWN) {
        state_of_last_error.clear();
        throw error(make_error_code(errc::store_unreachable), last_message(connection));
    }
    std::vector<const char*> raw;
    for (const auto& one : parameters) {
        if (one && one->find('\0') != std::string::npos) {
            throw error(make_error_code(errc::invalid_argument), "a zero byte in a parameter");
        }
        raw.push_back(one ? one->c_str() : nullptr);
    }
    answer told{::PQexecParams(connection,
                               sql.c_str(),
                               static_cast<int>(raw.size()),
                               nullptr,
                               raw.data(),
                               nullptr,
                               nullptr,
                               0),
                &::PQclear};
    const auto status = ::PQresultStatus(told.get());
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        fail(connection, told.get(), before != PQTRANS_IDLE);
    }
    return told;
}

void commit(PGconn* connection) {
    if (::PQtransactionStatus(connection) == PQTRANS_INERROR) {
        const auto text = last_message(connection);
        (void)send(connection, "ROLLBACK", {});
        throw error(make_error_code(errc::store_refused),
                    "a statement of the work failed, and nothing was written: " + text);
    }
    const answer told{::PQexec(connection, "COMMIT"), &::PQclear};
    if (::PQresultStatus(told.get()) == PGRES_COMMAND_OK) {
        return;
    }
    // An error of the commit itself (a deferred constraint) is a refusal. Without an answer, or with
    // one that tells of the server's end, it may have been committed.
    const char* state = ::PQresultErrorField(told.get(), PG_DIAG_SQLSTATE);
    const std::string_view known = state == nullptr ? "" : state;
    if (known.empty() || known.starts_with("57P") || known.starts_with("08")) {
        throw error(make_error_code(errc::outcome_unknown),
                    "the connection was lost at the commit: " + last_message(connection));
    }
    fail(connection, told.get(), true);
}

}  // namespace

void run_script(PGconn* connection, const std::string& sql) {
    const answer told{::PQexec(connection, sql.c_str()), &::PQclear};
    const auto status = ::PQresultStatus(told.get());
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        const answer ignored{::PQexec(connection, "ROLLBACK"), &::PQclear};
        fail(connection, told.get(), true);
    }
}

std::string last_message(const PGconn* connection) {
    std::string text = ::PQerrorMessage(connection);
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) {
        text.pop_back();
    }
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
}

const std::string& last_state() {
    return state_of_last_error;
}

void check_schema(std::string_view name) {
    if (!is_schema_name(name)) {
        throw error(make_error_code(errc::invalid_argument),
                    "no schema: \"" + std::string{name} + "\"");
    }
}

std::string quoted_column(PGconn* connection, const std::string& name) {
    const std::unique_ptr<char, decltype(&::PQfreemem)> quoted{
        ::PQescapeIdentifier(connection, name.c_str(), name.size()), &::PQfreemem};
    if (name.empty() || !quoted) {
        throw error(make_error_code(errc::invalid_argument), "no name for SQL: \"" + name + "\"");
    }
    return quoted.get();
}

std::string quoted_name(PGconn* connection, const std::string& name) {
    const auto dot = name.find('.');
    return dot == std::string::npos ? quoted_column(connection, name)
                                    : quoted_column(connection, name.substr(0, dot)) + "." +
                                          quoted_column(connection, name.substr(dot + 1));
}

bool is_text(std::string_view given) noexcept {
    for (std::size_t at = 0; at < given.size();) {
        const auto lead = static_cast<unsigned char>(given[at]);
        const std::size_t length = lead < 0x80   ? 1
                                   : lead < 0xC2 ? 0
                                   : lead < 0xE0 ? 2
                                   : lead < 0xF0 ? 3
                                   : lead < 0xF5 ? 4
                                                 : 0;
        if (lead == 0 || length == 0 || length > given.size() - at) {
            return false;
        }
        for (std::size_t more = 1; more < length; ++more) {
            if ((static_cast<unsigned char>(given[at + more]) & 0xC0) != 0x80) {
                return false;
            }
        }
        // Too long a form, a surrogate, or beyond the last one.
        const auto second = length > 2 ? static_cast<unsigned char>(given[at + 1]) : 0;
        if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) ||
            (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F)) {
            return false;
        }
        at += length;
    }
    return true;
}

bool has_transaction(PGconn* connection) {
    const auto status = ::PQtransactionStatus(connection);
    return status == PQTRANS_INTRANS || status == PQTRANS_INERROR;
}

void in_transaction(PGconn* connection, const std::function<bool()>& work) {
    if (has_transaction(connection)) {
        (void)work();
        return;
    }
    (void)send(connection, "BEGIN", {});
    bool keep = false;
    try {
        keep = work();
    } catch (...) {
        // Of a connection that is lost there is nothing left to roll back.
        const answer ignored{::PQexec(connection, "ROLLBACK"), &::PQclear};
        throw;
    }
    if (keep) {
        commit(connection);
    } else {
        (void)send(connection, "ROLLBACK", {});
    }
}

}  // namespace dibs::guard

namespace dibs::postgres {

result execute(PGconn* connection,
               const std::string& sql,
               const std::vector<std::optional<std::string>>& parameters) {
    const auto told = guard::send(connection, sql, parameters);
    result found;
    const int columns = ::PQnfields(told.get());
    for (int row = 0; row < ::PQntuples(told.get()); ++row) {
        auto& into = found.rows.emplace_back();
        for (int column = 0; column < columns; ++column) {
            auto& field = into[::PQfname(told.get(), column)];
            if (::PQgetisnull(told.get(), row, column) == 0) {
                field.emplace(::PQgetvalue(told.get(), row, column),
                              static_cast<std::size_t>(::PQgetlength(told.get(), row, column)));
            }
        }
    }
    found.changed = std::atoll(::PQcmdTuples(told.get()));
    return found;
}

}  // namespace dibs::postgres
