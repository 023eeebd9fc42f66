// SPDX-License-Identifier: Apache-2.0
#include "cli/demo/demo_database.hpp"

#include "guard/install.hpp"

#include <unistd.h>

#include <chrono>

namespace dibs::cli {

namespace {

/// Held by the session of each demo for as long as it runs.
std::string try_lock(const std::string& schema) {
    return "SELECT pg_catalog.pg_try_advisory_lock(pg_catalog.hashtextextended('" + schema +
           "', 0)) AS got";
}

bool is_ours_now(const guard::session& session, const std::string& schema) {
    return postgres::execute(session.raw(), try_lock(schema)).rows.at(0).at("got") == "t";
}

}  // namespace

demo_database::demo_database(const std::string& url)
    : url_(url),
      own_(url),
      schema_("dibs_demo_" + std::to_string(::getpid()) + "_" +
              std::to_string(std::chrono::system_clock::now().time_since_epoch().count() %
                             1'000'000'000)) {
    run("SET client_min_messages = warning");
    const auto old = postgres::execute(own_.raw(),
                                       "SELECT nspname FROM pg_catalog.pg_namespace WHERE nspname "
                                       "~ '^dibs_demo_[0-9]+_[0-9]+$'");
    for (const auto& row : old.rows) {
        if (const auto& left = row.at("nspname").value(); is_ours_now(own_, left)) {
            run("DROP SCHEMA IF EXISTS " + left + " CASCADE");
        }
    }
    (void)is_ours_now(own_, schema_);
    guard::install(url_, schema_);
}

demo_database::~demo_database() {
    try {
        run("DROP SCHEMA IF EXISTS " + schema_ + " CASCADE");
    } catch (const error&) {
        // The next demo does it.
    }
}

std::string demo_database::ask(const std::string& sql) const {
    const auto found = postgres::execute(own_.raw(), sql);
    return found.rows.at(0).begin()->second.value_or("");
}

}  // namespace dibs::cli
