// SPDX-License-Identifier: Apache-2.0
#include "guard/session.hpp"

#include "guard/talk.hpp"

namespace dibs::guard {

session::session(const std::string& url) : line_(::PQconnectdb(url.c_str()), &::PQfinish) {
    if (::PQstatus(line_.get()) != CONNECTION_OK) {
        throw error(make_error_code(errc::store_unreachable), last_message(line_.get()));
    }
}

}  // namespace dibs::guard
