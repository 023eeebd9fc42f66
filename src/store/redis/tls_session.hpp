// SPDX-License-Identifier: Apache-2.0
#pragma once
// TLS over one connected socket that never blocks: what `link` reads and writes through when the URL
// says rediss://. Version 1.2 or later; the server's certificate and name are always verified.
//
// Neither raises SIGPIPE nor asks a terminal for a passphrase. Files are read at the beginning of
// each session, so renewed certificates are taken with the next connection.
//
// Thread safety: none.

#include "store/redis/address.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

namespace dibs::store::redis {

struct tls_fault {
    std::error_code error;
    std::string text;  ///< what happened, and what to do
};

class tls_session {
  public:
    enum class state : std::uint8_t {
        done,
        again,  ///< once the socket is ready for what `wanted` says
        broken  ///< `fault` says why. Stays so
    };
    struct moved {
        state how = state::again;
        std::size_t bytes = 0;
    };

    virtual ~tls_session() = default;

    [[nodiscard]] virtual state handshake() = 0;
    [[nodiscard]] virtual moved read(std::span<char> room) = 0;
    /// After `again`: is called with the same bytes, or more.
    [[nodiscard]] virtual moved write(std::string_view bytes) = 0;
    /// Whether bytes were received that the socket does not tell of any more.
    [[nodiscard]] virtual bool holds_more() const noexcept = 0;
    /// What to wait for, as poll(2) says it, if the caller has something to write or has not.
    [[nodiscard]] virtual short wanted(bool writes) const noexcept = 0;
    /// Says that nothing more will come from here.
    virtual void finish() noexcept = 0;

    [[nodiscard]] virtual const tls_fault& fault() const noexcept = 0;
};

/// Requires: `where.tls`. The socket stays the caller's. Empty: `fault` says why.
[[nodiscard]] std::unique_ptr<tls_session> begin_tls(const address& where,
                                                     int socket,
                                                     tls_fault& fault);

}  // namespace dibs::store::redis
