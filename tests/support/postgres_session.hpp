// SPDX-License-Identifier: Apache-2.0
#pragma once
// One connection to a PostgreSQL server, to look into it and to interleave with others. It shares
// no code with ours.

#include "support/eventually.hpp"

#include <libpq-fe.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace dibs::testing {

/// What a server told, as psql -At would: rows on lines of their own, `|` between columns. Without
/// rows the number of those touched, or nothing; after an error `SQLSTATE: message`.
[[nodiscard]] inline std::string text_of(const PGresult* told) {
    if (told == nullptr) {
        return "no answer";
    }
    const auto status = ::PQresultStatus(told);
    if (status == PGRES_COMMAND_OK) {
        return ::PQcmdTuples(const_cast<PGresult*>(told));
    }
    if (status != PGRES_TUPLES_OK) {
        const char* state = ::PQresultErrorField(told, PG_DIAG_SQLSTATE);
        const char* message = ::PQresultErrorField(told, PG_DIAG_MESSAGE_PRIMARY);
        return message == nullptr ? std::string{::PQresultErrorMessage(told)}
                                  : std::string{state == nullptr ? "" : state} + ": " + message;
    }
    std::string all;
    for (int row = 0; row < ::PQntuples(told); ++row) {
        all += row == 0 ? "" : "\n";
        for (int column = 0; column < ::PQnfields(told); ++column) {
            all += column == 0 ? "" : "|";
            all.append(::PQgetvalue(told, row, column),
                       static_cast<std::size_t>(::PQgetlength(told, row, column)));
        }
    }
    return all;
}

class postgres_session {
  public:
    /// `where`: a libpq URI or string. Errors: std::runtime_error.
    explicit postgres_session(const std::string& where)
        : line_(::PQconnectdb(where.c_str()), &::PQfinish) {
        if (::PQstatus(line_.get()) != CONNECTION_OK) {
            throw std::runtime_error{::PQerrorMessage(line_.get())};
        }
        ::PQsetNoticeProcessor(
            line_.get(),
            [](void* into, const char* text) { static_cast<std::string*>(into)->append(text); },
            notices_.get());
    }

    [[nodiscard]] PGconn* raw() const noexcept { return line_.get(); }
    [[nodiscard]] int server_process() const { return ::PQbackendPID(line_.get()); }
    /// Warnings and notices so far.
    [[nodiscard]] const std::string& notices() const noexcept { return *notices_; }
    /// DETAIL of the last error that ask() or finish() met.
    [[nodiscard]] const std::string& detail() const noexcept { return detail_; }

    /// One statement, or several: the answer of the last one, or of the first that fails.
    std::string ask(const std::string& sql) { return keep(::PQexec(line_.get(), sql.c_str())); }
    std::string ask(const std::string& sql, const std::vector<std::string>& arguments) {
        std::vector<const char*> raw;
        for (const auto& argument : arguments) {
            raw.push_back(argument.c_str());
        }
        return keep(::PQexecParams(line_.get(),
                                   sql.c_str(),
                                   static_cast<int>(raw.size()),
                                   nullptr,
                                   raw.data(),
                                   nullptr,
                                   nullptr,
                                   0));
    }
    /// Does not wait for the answer, which finish() brings.
    void send(const std::string& sql) {
        if (::PQsendQuery(line_.get(), sql.c_str()) == 0) {
            throw std::runtime_error{::PQerrorMessage(line_.get())};
        }
    }
    /// The answer to what was sent.
    std::string finish() {
        std::string last = "nothing was sent";
        while (PGresult* told = ::PQgetResult(line_.get())) {
            last = keep(told);
        }
        return last;
    }
    /// Whether the answer to what was sent is there.
    [[nodiscard]] bool has_answered() const {
        return ::PQconsumeInput(line_.get()) == 0 || ::PQisBusy(line_.get()) == 0;
    }
    [[nodiscard]] bool answers_soon() const {
        return eventually([&] { return has_answered(); });
    }

  private:
    std::string keep(PGresult* told) {
        const std::unique_ptr<PGresult, void (*)(PGresult*)> owned{told, &::PQclear};
        if (told != nullptr && ::PQresultStatus(told) == PGRES_FATAL_ERROR) {
            const char* detail = ::PQresultErrorField(told, PG_DIAG_MESSAGE_DETAIL);
            detail_ = detail == nullptr ? "" : detail;
        }
        return text_of(told);
    }

    std::unique_ptr<PGconn, void (*)(PGconn*)> line_;
    std::unique_ptr<std::string> notices_ = std::make_unique<std::string>();
    std::string detail_;
};

}  // namespace dibs::testing
