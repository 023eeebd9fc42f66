// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/advisory/pooler.hpp"

#include "store/postgres/conversation.hpp"

#include <dibs/error.hpp>

#include <chrono>
#include <cstdlib>
#include <string>

namespace dibs::store::postgres {

namespace {

using namespace std::chrono_literals;

/// A pooler with a single session, which another transaction has, answers after that one.
constexpr core::nanoseconds patience = 2s;

constexpr const char* which_session = "SELECT pg_catalog.pg_backend_pid()";

int session_of(link& over, core::environment env, const std::string& before = "") {
    const auto told = converse(over, env, before + which_session, patience);
    return told.result && ::PQresultStatus(told.result.get()) == PGRES_TUPLES_OK
               ? std::atoi(::PQgetvalue(told.result.get(), 0, 0))
               : 0;
}

trouble by_transaction(const address& where) {
    return {errc::unsupported,
            where.shown +
                ": a pooler in front of the server lends a session for one transaction at a time, "
                "and an advisory lock lives in a session; name the server itself, set "
                "pool_mode=session, or use postgres://…, whose leases are rows"};
}

}  // namespace

trouble check_pooler(link& over, core::environment env, const address& where) {
    // One that hands out sessions in turns shows it here …
    const int first = over.process();
    for (int at = 0; at < 3; ++at) {
        const int now = session_of(over, env);
        if (over.at() == link::phase::closed) {
            return over.fault();
        }
        if (now != first) {
            return by_transaction(where);
        }
    }
    // … and one that hands out the one that was used last, when another client has it.
    const statements none{where.quoted_schema()};
    link other{where, none, ""};
    other.open(env.time.now());
    if (auto why = greeted(other, env); why.error) {
        return why;
    }
    const int others = session_of(other, env, "BEGIN; ");
    const int still = session_of(over, env);
    if (others == first || still != first) {
        return by_transaction(where);
    }
    return over.at() == link::phase::closed ? over.fault() : trouble{};
}

}  // namespace dibs::store::postgres
