// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/schema.hpp"

#include "core/key.hpp"
#include "store/postgres/conversation.hpp"
#include "store/postgres/request.hpp"
#include "store/postgres/statements.hpp"

#include <dibs/error.hpp>

#include <chrono>
#include <cstdlib>
#include <string>

namespace dibs::store::postgres {

namespace {

using namespace std::chrono_literals;

constexpr core::nanoseconds patience = 15s;

/// Any two programs that make tables of dibs in a database do it one after the other.
constexpr const char* maker_lock = "SELECT pg_catalog.pg_advisory_xact_lock(7235419150021427571)";

/// For one statement, of a session that else waits for hardly any lock: a table may be locked as a
/// whole for a moment (VACUUM FULL).
constexpr const char* for_a_table = "SET LOCAL lock_timeout = '4s'; ";

reply ask(link& over, core::environment env, const std::string& sql) {
    return converse(over, env, sql, patience);
}

std::string first_value(const reply& told) {
    return told.result && ::PQntuples(told.result.get()) > 0 && ::PQnfields(told.result.get()) > 0
               ? std::string{::PQgetvalue(told.result.get(), 0, 0)}
               : std::string{};
}

trouble refused_format(const std::string& format, const address& where) {
    const int number = std::atoi(format.c_str());
    if (number > 0 && number < schema_format) {
        return {errc::unsupported,
                where.shown + ": the tables in the schema " + where.schema + " are of format " +
                    format + ", made before any release; this build knows " +
                    std::to_string(schema_format) +
                    ": drop the schema while nobody uses it (fences go on by the clock), or name "
                    "another one (schema=…)"};
    }
    if (number > schema_format) {
        return {errc::newer_format,
                where.shown + ": the tables in the schema " + where.schema + " are of format " +
                    format + ", made by a newer release; this one knows " +
                    std::to_string(schema_format) + ": use that release"};
    }
    return {errc::store_damaged,
            where.shown + ": the table lease_format in the schema " + where.schema +
                " tells no format that dibs has written"};
}

std::string hash_of(const address& where) {
    return where.sessions == address::numbers::hashtext ? "hashtext" : "sha256";
}

/// A schema is used in one way by everybody: a lease that is a row and one that is an advisory lock
/// know nothing of each other.
trouble refused_use(const std::string& use, const address& where) {
    const auto advice = "; name another schema (schema=…)";
    if (!where.by_session()) {
        return use.empty() ? trouble{}
                           : trouble{errc::unsupported,
                                     where.shown + ": the schema " + where.schema +
                                         " is that of postgres+advisory://, whose leases this "
                                         "store does not see" +
                                         advice};
    }
    if (use.empty()) {
        return {errc::unsupported,
                where.shown + ": the schema " + where.schema +
                    " is that of postgres://, whose leases this store does not see" + advice};
    }
    return use == hash_of(where)
               ? trouble{}
               : trouble{errc::unsupported,
                         where.shown + ": the schema " + where.schema +
                             " is used with hash=" + core::printable(use) +
                             ", and who names locks otherwise excludes nobody" + advice};
}

/// What a missing right means here.
trouble with_advice(trouble why, std::string_view state, const address& where) {
    if (state == "42501") {
        why.detail +=
            "; to make its tables, dibs needs once: GRANT CREATE ON DATABASE …, or a "
            "schema " +
            where.quoted_schema() + " in which this user may create";
    }
    return why;
}

}  // namespace

std::string no_tables_yet(const address& where) {
    return "nobody has made the tables of dibs in the schema " + core::printable(where.schema) +
           " yet; the first lease or hold makes them (dibs run, once, elect, acquire or hold), "
           "unless the URL says create=no";
}

trouble ensure_schema(link& over, core::environment env, const address& where) {
    const auto schema = where.quoted_schema();
    const auto fault = [&](const reply& told) {
        return told.result ? with_advice(fault_of(told, where.shown), state_of(told), where)
                           : over.fault();
    };
    // Whether the other table is there is asked before it is read: the server's log is no place for
    // what is as it should be.
    const auto look = std::string{for_a_table} +
                      "SELECT format, EXISTS (SELECT FROM pg_catalog.pg_class c JOIN "
                      "pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = " +
                      where.schema_literal() + " AND c.relname = 'lease_session') FROM " + schema +
                      ".lease_format";
    const auto verdict = [&](const reply& told) {
        const auto format = first_value(told);
        if (format != std::to_string(schema_format)) {
            return refused_format(format, where);
        }
        if (std::string_view{::PQgetvalue(told.result.get(), 0, 1)} == "f") {
            return refused_use("", where);
        }
        const auto use =
            ask(over, env, for_a_table + ("SELECT hash FROM " + schema + ".lease_session"));
        if (!use.result || ::PQresultStatus(use.result.get()) != PGRES_TUPLES_OK) {
            return fault(use);
        }
        return refused_use(first_value(use), where);
    };
    auto told = ask(over, env, look);
    if (told.result && ::PQresultStatus(told.result.get()) == PGRES_TUPLES_OK) {
        return verdict(told);
    }
    const auto state = told.result ? std::string{state_of(told)} : std::string{};
    if (state != "42P01" && state != "3F000") {
        return fault(told);
    }
    if (!where.make) {
        return {errc::store_unreachable, where.shown + ": " + no_tables_yet(where)};
    }
    // In one transaction, whoever lends us the session for it.
    const auto there =
        ask(over,
            env,
            "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = " + where.schema_literal());
    const bool make_schema = first_value(there).empty();
    auto text =
        "BEGIN; SET LOCAL search_path = pg_catalog, pg_temp; "
        "SET LOCAL synchronous_commit = on; SET LOCAL lock_timeout = 0; " +
        std::string{maker_lock} + "; ";
    if (make_schema) {
        text += "CREATE SCHEMA IF NOT EXISTS " + schema + "; ";
    }
    text += schema_text(schema);
    if (where.by_session()) {
        text += session_text(schema, hash_of(where));
    }
    text += "; COMMIT";
    const auto made = ask(over, env, text);
    if (!made.result) {
        return over.fault();
    }
    const bool failed = ::PQresultStatus(made.result.get()) == PGRES_FATAL_ERROR;
    const auto why = failed ? std::string{state_of(made)} : std::string{};
    if (failed) {
        static_cast<void>(ask(over, env, "ROLLBACK"));
    }
    // Somebody else made them meanwhile: all is well.
    if (failed && why != "42P07" && why != "42P06" && why != "23505" && why != "42723") {
        return fault(made);
    }
    const auto now = ask(over, env, look);
    if (!now.result || ::PQresultStatus(now.result.get()) != PGRES_TUPLES_OK) {
        return fault(now);
    }
    return verdict(now);
}

}  // namespace dibs::store::postgres
