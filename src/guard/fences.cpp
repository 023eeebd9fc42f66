// SPDX-License-Identifier: Apache-2.0
#include "guard/script.hpp"
#include "guard/talk.hpp"

namespace dibs::postgres {

void fenced(PGconn* connection,
            std::string_view key,
            std::uint64_t fence,
            const std::function<void()>& work,
            std::string_view schema) {
    if (!guard::is_schema_name(schema)) {
        throw error(make_error_code(errc::invalid_argument),
                    "no schema: \"" + std::string{schema} + "\"");
    }
    guard::in_transaction(connection, [&] {
        (void)execute(connection,
                      "SELECT " + std::string{schema} + ".claim($1, $2::bigint)",
                      {std::string{key}, std::to_string(fence)});
        work();
        return true;
    });
}

void fenced(PGconn* connection,
            const lease& held,
            const std::function<void()>& work,
            std::string_view schema) {
    fenced(connection, held.key(), held.fence(), work, schema);
}

}  // namespace dibs::postgres
