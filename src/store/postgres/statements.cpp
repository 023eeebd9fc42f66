// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/statements.hpp"

namespace dibs::store::postgres {

namespace {

/// The types are named in the text: else the server would take them from whatever function of that
/// name it thinks fits, and somebody who may create in the schema could offer another one.
template <std::size_t count>
std::string call(const std::string& schema,
                 std::string_view function,
                 const std::array<std::string_view, count>& types) {
    auto text = "SELECT * FROM " + schema + "." + std::string{function} + "(";
    for (std::size_t at = 0; at < count; ++at) {
        text += (at > 0 ? ",$" : "$") + std::to_string(at + 1) + "::pg_catalog." +
                std::string{types[at]};
    }
    return text + ")";
}

constexpr std::array<std::string_view, 22> lease_steps{
    "int8[]",  "text[]", "bytea[]", "int8[]", "int8[]",  "int8[]", "int8[]", "int8[]",
    "int8[]",  "int8[]", "int8[]",  "int8[]", "bytea[]", "int8[]", "int8[]", "bytea[]",
    "bytea[]", "text",   "text",    "bool",   "int8",    "int8"};
constexpr auto session_steps = [] {
    auto types = lease_steps;
    types.back() = "text";
    return types;
}();
constexpr std::array<std::string_view, 3> part_of_list{"text", "text", "int8"};
constexpr std::array<std::string_view, 3> to_watch{"text[]", "text", "int4"};
constexpr std::array<std::string_view, 2> to_unwatch{"text[]", "text"};
constexpr std::array<std::string_view, 2> to_purge{"text", "int8"};

/// Records as lease_list_1 has them, without the holders whose sessions are gone.
std::string session_listing(const std::string& schema) {
    return "SELECT o_key, o_now, o_fence, o_capacity, CASE WHEN " + schema +
           ".session_lives_1(o_holders[7]::pg_catalog.text) THEN o_holders END, o_waiters, "
           "o_queued, o_queue, "
           "o_value, o_value_fence, o_value_mark, o_value_written, o_value_fresh_until, "
           "o_value_keep_until, o_blocked_until, o_reason FROM " +
           schema + ".lease_list_1($1::pg_catalog.text,$2::pg_catalog.text,$3::pg_catalog.int8)";
}

/// Gives back those of the first that this session has (of others the server would warn), and tells
/// whether it has all of the second.
std::string settling_of_locks() {
    constexpr const char* held =
        "(SELECT FROM pg_catalog.pg_locks l WHERE l.pid = pg_catalog.pg_backend_pid() AND "
        "l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted AND "
        "(l.classid::bigint << 32) | l.objid::bigint = e.lock)";
    return std::string{
               "SELECT (SELECT pg_catalog.count(pg_catalog.pg_advisory_unlock(e.lock)) "
               "FROM pg_catalog.unnest($1::pg_catalog.int8[]) AS e(lock) WHERE EXISTS "} +
           held +
           "), NOT EXISTS (SELECT FROM pg_catalog.unnest($2::pg_catalog.int8[]) AS e(lock) WHERE "
           "NOT EXISTS " +
           held + ")";
}

}  // namespace

statements::statements(const std::string& quoted_schema, bool sessions)
    : texts_{sessions ? call(quoted_schema, "session_execute_1", session_steps)
                      : call(quoted_schema, "lease_execute_1", lease_steps),
             sessions ? session_acquire_one_text(quoted_schema) : acquire_one_text(quoted_schema),
             sessions ? session_release_one_text(quoted_schema) : release_one_text(quoted_schema),
             sessions ? session_step_some_text(quoted_schema) : step_some_text(quoted_schema),
             sessions ? session_listing(quoted_schema)
                      : call(quoted_schema, "lease_list_1", part_of_list),
             call(quoted_schema, "lease_watch_1", to_watch),
             call(quoted_schema, "lease_unwatch_1", to_unwatch),
             call(quoted_schema, sessions ? "session_purge_1" : "lease_purge_1", to_purge),
             "SELECT 1",
             "SELECT pg_catalog.hashtext(e.name)::bigint FROM "
             "pg_catalog.unnest($1::pg_catalog.text[]) WITH ORDINALITY AS "
             "e(name, n) ORDER BY e.n",
             settling_of_locks()} {}

const char* statements::name(statement which) noexcept {
    switch (which) {
        case statement::execute:
            return "dibs_execute";
        case statement::acquire_one:
            return "dibs_acquire_one";
        case statement::release_one:
            return "dibs_release_one";
        case statement::step_some:
            return "dibs_step_some";
        default:
            return nullptr;
    }
}

}  // namespace dibs::store::postgres
