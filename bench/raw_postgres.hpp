// SPDX-License-Identifier: Apache-2.0
#pragma once
// A connection to a PostgreSQL server by hand, for what the benchmarks compare with, and what they
// want to know of the server. Its processes are looked at on this machine.

#include "measure.hpp"

#include <libpq-fe.h>
#include <poll.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace dibs::bench {

class raw_postgres {
  public:
    explicit raw_postgres(const std::string& url) : line_(::PQconnectdb(url.c_str()), &::PQfinish) {
        if (::PQstatus(line_.get()) != CONNECTION_OK) {
            throw std::runtime_error(::PQerrorMessage(line_.get()));
        }
        ask("SET plan_cache_mode = force_generic_plan; SET jit = off; SET enable_seqscan = off; "
            "SET client_min_messages = error");
    }

    /// The first column of the rows of the last statement.
    std::vector<std::string> ask(const std::string& sql) {
        return taken(::PQexec(line_.get(), sql.c_str()));
    }
    std::int64_t number(const std::string& sql) { return std::stoll(ask(sql).at(0)); }

    void prepare(const std::string& name, const std::string& sql) {
        taken(::PQprepare(line_.get(), name.c_str(), sql.c_str(), 0, nullptr));
    }
    std::vector<std::string> run(const std::string& name, const std::vector<std::string>& with) {
        std::vector<const char*> values;
        for (const auto& one : with) {
            values.push_back(one.c_str());
        }
        return taken(::PQexecPrepared(line_.get(),
                                      name.c_str(),
                                      static_cast<int>(values.size()),
                                      values.data(),
                                      nullptr,
                                      nullptr,
                                      0));
    }

    /// What somebody notified of, within so many milliseconds; empty: nothing.
    std::string notification(int patience_ms) {
        for (;;) {
            if (auto* told = ::PQnotifies(line_.get())) {
                std::string text = told->extra;
                ::PQfreemem(told);
                return text;
            }
            pollfd one{::PQsocket(line_.get()), POLLIN, 0};
            if (::poll(&one, 1, patience_ms) <= 0 || ::PQconsumeInput(line_.get()) == 0) {
                return {};
            }
        }
    }

    std::int64_t transactions() {
        ask("SELECT pg_stat_force_next_flush()");
        return number(
            "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()");
    }
    /// CPU time of the server's present processes, those that write to the disk among them.
    seconds cpu_of_server() {
        seconds all{};
        for (const auto& pid : ask("SELECT pid FROM pg_stat_activity")) {
            std::ifstream file{"/proc/" + pid + "/schedstat"};
            double nanoseconds = 0;
            file >> nanoseconds;
            all += seconds{nanoseconds / 1e9};
        }
        return all;
    }

  private:
    static std::vector<std::string> taken(PGresult* told) {
        const std::unique_ptr<PGresult, void (*)(PGresult*)> whole{told, &::PQclear};
        const auto status = ::PQresultStatus(told);
        if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
            throw std::runtime_error(::PQresultErrorMessage(told));
        }
        std::vector<std::string> all;
        for (int row = 0; row < ::PQntuples(told); ++row) {
            all.emplace_back(::PQgetvalue(told, row, 0));
        }
        return all;
    }

    std::unique_ptr<PGconn, void (*)(PGconn*)> line_;
};

}  // namespace dibs::bench
