// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/statements.hpp"

namespace dibs::store::postgres {

namespace {

std::string call(const std::string& schema, std::string_view function, int parameters) {
    auto text = "SELECT * FROM " + schema + "." + std::string{function} + "(";
    for (int at = 1; at <= parameters; ++at) {
        text += (at > 1 ? ",$" : "$") + std::to_string(at);
    }
    return text + ")";
}

/// Records as lease_list_1 has them, without the holders whose sessions are gone.
std::string session_listing(const std::string& schema) {
    return "SELECT o_key, o_now, o_fence, o_capacity, CASE WHEN " + schema +
           ".session_lives_1(o_holders[7]) THEN o_holders END, o_waiters, o_queued, o_queue, "
           "o_value, o_value_fence, o_value_mark, o_value_written, o_value_fresh_until, "
           "o_value_keep_until, o_blocked_until, o_reason FROM " +
           schema + ".lease_list_1($1,$2,$3)";
}

}  // namespace

statements::statements(const std::string& quoted_schema, bool sessions)
    : texts_{call(quoted_schema, sessions ? "session_execute_1" : "lease_execute_1", 22),
             sessions ? session_listing(quoted_schema) : call(quoted_schema, "lease_list_1", 3),
             call(quoted_schema, "lease_watch_1", 3),
             call(quoted_schema, "lease_unwatch_1", 2),
             call(quoted_schema, sessions ? "session_purge_1" : "lease_purge_1", 2),
             "SELECT 1",
             "SELECT hashtext(e.name)::bigint FROM unnest($1::text[]) WITH ORDINALITY AS "
             "e(name, n) ORDER BY e.n"} {}

const char* statements::name(statement which) noexcept {
    switch (which) {
        case statement::execute:
            return "dibs_execute";
        case statement::list:
            return "dibs_list";
        case statement::watch:
            return "dibs_watch";
        case statement::unwatch:
            return "dibs_unwatch";
        case statement::purge:
            return "dibs_purge";
        case statement::numbers:
            return "dibs_numbers";
        case statement::ping:
            break;
    }
    return "dibs_ping";
}

}  // namespace dibs::store::postgres
