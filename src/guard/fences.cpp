// SPDX-License-Identifier: Apache-2.0
#include "guard/script.hpp"
#include "guard/talk.hpp"

#include <algorithm>

namespace dibs::postgres {

void fenced(PGconn* connection,
            std::string_view key,
            std::uint64_t fence,
            const std::function<void()>& work,
            const fence_options& options) {
    guard::check_schema(options.schema);
    guard::in_transaction(connection, [&] {
        // The server takes 0 for "no limit".
        const auto wait = std::max(options.wait, std::chrono::milliseconds{1});
        (void)execute(
            connection,
            "SELECT " + guard::quoted_schema(options.schema) +
                ".claim($1::text, $2::bigint, $3::interval)",
            {std::string{key}, std::to_string(fence), std::to_string(wait.count()) + " ms"});
        work();
        return true;
    });
}

void fenced(PGconn* connection,
            const lease& held,
            const std::function<void()>& work,
            const fence_options& options) {
    fenced(connection, held.key(), held.fence(), work, options);
}

}  // namespace dibs::postgres
