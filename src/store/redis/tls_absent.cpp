// SPDX-License-Identifier: Apache-2.0
// Of a build without OpenSSL.
#include "store/redis/tls_session.hpp"

#include <dibs/error.hpp>

namespace dibs::store::redis {

std::unique_ptr<tls_session> begin_tls(const address& /*where*/, int /*socket*/, tls_fault& fault) {
    fault = {errc::unsupported, "this build speaks no TLS: it was made with DIBS_WITH_TLS=OFF"};
    return nullptr;
}

}  // namespace dibs::store::redis
