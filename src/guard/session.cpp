// SPDX-License-Identifier: Apache-2.0
#include "guard/session.hpp"

#include "guard/talk.hpp"

#include <array>
#include <cstdlib>

namespace dibs::guard {

namespace {

PGconn* connect(const std::string& url) {
    // What stands before `dbname` counts unless the URL says something else.
    const bool is_set = std::getenv("PGCONNECT_TIMEOUT") != nullptr;
    const std::array<const char*, 4> keywords{"fallback_application_name",
                                              is_set ? "dbname" : "connect_timeout",
                                              is_set ? nullptr : "dbname",
                                              nullptr};
    const std::array<const char*, 4> values{
        "dibs", is_set ? url.c_str() : "5", is_set ? nullptr : url.c_str(), nullptr};
    return ::PQconnectdbParams(keywords.data(), values.data(), 1);
}

/// Why there is no connection. libpq tells no code for it.
error refusal(const std::string& text) {
    if (text.find("database \"") != std::string::npos &&
        text.find("does not exist") != std::string::npos) {
        return {make_error_code(errc::invalid_argument),
                "there is no such database; createdb makes one (" + text + ")"};
    }
    return {make_error_code(errc::store_unreachable), text};
}

}  // namespace

session::session(const std::string& url) : line_(connect(url), &::PQfinish) {
    if (::PQstatus(line_.get()) != CONNECTION_OK) {
        throw refusal(last_message(line_.get()));
    }
}

}  // namespace dibs::guard
