// SPDX-License-Identifier: Apache-2.0
#include "guard/talk.hpp"

namespace dibs::postgres {

request_result idempotent(PGconn* connection,
                          std::string_view key,
                          std::string_view payload,
                          const std::function<std::string()>& work,
                          const request_options& options) {
    guard::check_schema(options.schema);
    const std::string where{options.schema};
    request_result found;
    guard::in_transaction(connection, [&] {
        const auto told =
            execute(connection,
                    "SELECT outcome, result FROM " + where + ".begin_request($1, $2, $3::interval)",
                    {std::string{key},
                     std::string{payload},
                     std::to_string(options.wait.count()) + " ms"})
                .rows.at(0);
        if (const auto& outcome = told.at("outcome"); outcome == "in_flight") {
            return false;
        } else if (outcome == "replay") {
            found.how = request_result::outcome::replayed;
            found.answer = told.at("result").value_or("");
            return false;
        }
        found.answer = work();
        (void)execute(
            connection,
            "SELECT " + where + ".finish_request($1, $2, $3::interval)",
            {std::string{key}, found.answer, std::to_string(options.keep.count()) + " s"});
        found.how = request_result::outcome::done;
        return true;
    });
    return found;
}

}  // namespace dibs::postgres
