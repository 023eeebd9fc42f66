// SPDX-License-Identifier: Apache-2.0
#include "guard/patience.hpp"
#include "guard/talk.hpp"

namespace dibs::postgres {

namespace {

/// dibs.lock_number(), which may not be installed.
constexpr const char* try_lock =
    "SELECT pg_catalog.pg_try_advisory_xact_lock(('x' || pg_catalog.encode(pg_catalog.substr("
    "pg_catalog.sha256(pg_catalog.decode('6469627300', 'hex') || pg_catalog.convert_to($1::text, "
    "'UTF8')), 1, 8), "
    "'hex'))::bit(64)::bigint) AS got";

}  // namespace

bool try_xact_lock(PGconn* connection, std::string_view name) {
    if (!guard::has_transaction(connection)) {
        throw error(make_error_code(errc::invalid_argument),
                    "a lock of a transaction, and no transaction was begun");
    }
    const auto told = execute(connection, try_lock, {std::string{name}});
    return told.rows.at(0).at("got") == "t";
}

bool xact_lock(PGconn* connection,
               std::string_view name,
               std::chrono::milliseconds wait,
               std::stop_token stop) {
    guard::patience waiting(std::chrono::milliseconds{2}, std::chrono::milliseconds{100}, wait);
    while (!try_xact_lock(connection, name)) {
        if (!waiting.pause(stop)) {
            return false;
        }
    }
    return true;
}

bool with_xact_lock(PGconn* connection,
                    std::string_view name,
                    std::chrono::milliseconds wait,
                    const std::function<void()>& work,
                    std::stop_token stop) {
    // A transaction per attempt: whoever builds an index concurrently waits for the end of those that
    // it met, not only of their statements.
    guard::patience waiting(std::chrono::milliseconds{2}, std::chrono::milliseconds{100}, wait);
    bool got = false;
    do {
        guard::in_transaction(connection, [&] {
            got = try_xact_lock(connection, name);
            if (got) {
                work();
            }
            return got;
        });
    } while (!got && waiting.pause(stop));
    return got;
}

}  // namespace dibs::postgres
