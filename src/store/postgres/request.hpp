// SPDX-License-Identifier: Apache-2.0
#pragma once
// What travels over a connection: one statement with one reply. Requests are answered on the thread
// that does the I/O; they leave letters for their callers.

#include "core/environment.hpp"
#include "core/time.hpp"
#include "store/postgres/carrier.hpp"
#include "store/postgres/trouble.hpp"

#include <memory>
#include <vector>

namespace dibs::store::postgres {

class request {
  public:
    /// Completions on their way to the executor, and requests that follow from this one.
    struct outcome {
        std::vector<core::task>& letters;
        std::vector<std::unique_ptr<request>>& next;
        core::instant now;
    };
    enum class sending : std::uint8_t {
        sent,
        nothing,  ///< nothing is left to be sent; nobody else is to be told
        failed,   ///< the connection broke before anything was sent
    };

    request() = default;
    request(const request&) = delete;
    request& operator=(const request&) = delete;
    virtual ~request() = default;

    /// When it is no use any more to begin it, or a part of it.
    [[nodiscard]] virtual core::instant deadline() const noexcept = 0;
    /// Refuses what is late by now. True: nothing is left.
    [[nodiscard]] virtual bool expire(outcome told) = 0;
    /// It rests until then.
    [[nodiscard]] virtual core::instant not_before() const noexcept { return {}; }

    /// The server may wait for other transactions before it answers.
    [[nodiscard]] virtual bool may_wait() const noexcept { return true; }

    [[nodiscard]] virtual sending send(carrier& over, outcome told) = 0;

    /// The reply, which is not null.
    virtual void answered(const reply& told, outcome after) = 0;

    /// Was not sent, and never will be.
    virtual void refused(const trouble& why, outcome told) = 0;
    /// Was sent, and no reply will come.
    virtual void lost(const trouble& why, outcome told) = 0;
};

/// What is wrong with a reply; no error: nothing.
[[nodiscard]] trouble fault_of(const reply& told, std::string_view where);
/// The SQLSTATE of a reply; empty: it has none.
[[nodiscard]] std::string_view state_of(const reply& told) noexcept;

}  // namespace dibs::store::postgres
