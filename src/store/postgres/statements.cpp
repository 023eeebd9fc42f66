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

}  // namespace

statements::statements(const std::string& quoted_schema)
    : texts_{call(quoted_schema, "lease_execute_1", 22),
             call(quoted_schema, "lease_list_1", 3),
             call(quoted_schema, "lease_watch_1", 3),
             call(quoted_schema, "lease_unwatch_1", 2),
             call(quoted_schema, "lease_purge_1", 2),
             "SELECT 1"} {}

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
        case statement::ping:
            break;
    }
    return "dibs_ping";
}

}  // namespace dibs::store::postgres
