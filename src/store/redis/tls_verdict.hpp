// SPDX-License-Identifier: Apache-2.0
#pragma once
// Why a server's certificate was refused, in words that say what to do.

#include <openssl/x509_vfy.h>

#include <string>

namespace dibs::store::redis {

struct tls_verdict {
    std::string name;  ///< that the server has to prove
    std::string ca;    ///< file of those that are trusted; empty: the system's
    std::string text;  ///< empty: nothing was refused

    void refuse(X509_STORE_CTX* about);
};

}  // namespace dibs::store::redis
