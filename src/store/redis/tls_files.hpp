// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a TLS session is set up with: whom it trusts, and what it proves itself by.

#include "store/redis/tls_session.hpp"

#include <openssl/ssl.h>

#include <memory>

namespace dibs::store::redis {

struct free_tls_context {
    void operator()(SSL_CTX* one) const noexcept { ::SSL_CTX_free(one); }
};
using tls_context = std::unique_ptr<SSL_CTX, free_tls_context>;

/// Empty: `fault` says why.
[[nodiscard]] tls_context load_tls_context(const tls_settings& from, tls_fault& fault);

}  // namespace dibs::store::redis
