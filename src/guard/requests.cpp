// SPDX-License-Identifier: Apache-2.0
#include "guard/script.hpp"
#include "guard/talk.hpp"

namespace dibs::postgres {

namespace {

constexpr std::size_t key_bytes_max = 1024;

/// Before the work is done, not when its answer is to be kept.
void check(std::string_view key, std::string_view payload) {
    if (key.empty() || key.size() > key_bytes_max) {
        throw error(make_error_code(errc::invalid_argument),
                    "the key of a request has 1 to 1024 bytes");
    }
    if (!guard::is_text(key) || !guard::is_text(payload)) {
        throw error(make_error_code(errc::invalid_argument),
                    "key and payload of a request are text, UTF-8 without zero bytes; of other "
                    "bytes give a digest in hex");
    }
}

}  // namespace

request_result idempotent(PGconn* connection,
                          std::string_view key,
                          std::string_view payload,
                          const std::function<std::string()>& work,
                          const request_options& options) {
    guard::check_schema(options.schema);
    check(key, payload);
    const auto where = guard::quoted_schema(options.schema);
    request_result found;
    guard::in_transaction(connection, [&] {
        const auto told = execute(connection,
                                  "SELECT outcome, result FROM " + where +
                                      ".begin_request($1::text, $2::text, $3::interval)",
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
            "SELECT " + where + ".finish_request($1::text, $2::text, $3::interval)",
            {std::string{key}, found.answer, std::to_string(options.keep.count()) + " s"});
        found.how = request_result::outcome::done;
        return true;
    });
    return found;
}

}  // namespace dibs::postgres
