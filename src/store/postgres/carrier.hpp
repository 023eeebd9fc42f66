// SPDX-License-Identifier: Apache-2.0
#pragma once
// What requests see of a connection: it takes one statement at a time, and gives its reply. The
// simulator has another one than link.hpp.

#include "store/postgres/statements.hpp"
#include "store/postgres/wire.hpp"

#include <optional>
#include <string>

namespace dibs::store::postgres {

/// Why a statement was not carried out.
struct server_error {
    std::string state;   ///< the SQLSTATE; empty: the connection broke
    std::string words;   ///< the server's own
    bool fatal = false;  ///< it ended the session: whether the statement took effect is not told
};

/// What a statement gave.
struct reply {
    result_ptr result;                  ///< the last one; null: the connection broke
    std::string warning;                ///< not empty: the server warned of something while it ran
    std::optional<server_error> error;  ///< what `result` says, if it failed
};

class carrier {
  public:
    carrier() = default;
    carrier(const carrier&) = delete;
    carrier& operator=(const carrier&) = delete;

    /// False: it is closed now, and nothing was sent.
    virtual bool send(statement which, const parameters& with) = 0;
    virtual bool send_text(const std::string& sql) = 0;

    /// The session is ours, set up and with its statements prepared; not one that a pooler lends.
    [[nodiscard]] virtual bool is_set_up() const noexcept = 0;

  protected:
    ~carrier() = default;
};

}  // namespace dibs::store::postgres
