// SPDX-License-Identifier: Apache-2.0
#pragma once
// What travels over the data connection: one command with one reply. Requests are answered on the
// thread that does the I/O; they leave letters for their callers.

#include "core/environment.hpp"
#include "core/time.hpp"
#include "store/redis/resp.hpp"
#include "store/remote/trouble.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace dibs::store::redis {

using remote::trouble;

class request {
  public:
    /// Completions on their way to the executor, and requests that follow from this one.
    struct outcome {
        std::vector<core::task>& letters;
        std::vector<std::unique_ptr<request>>& next;
    };

    request() = default;
    request(const request&) = delete;
    request& operator=(const request&) = delete;
    virtual ~request() = default;

    /// When it is no use any more to begin it.
    [[nodiscard]] virtual core::instant deadline() const noexcept = 0;

    /// Whether the server is to tell this process something later (core::acquire::notify).
    [[nodiscard]] virtual bool leaves_word() const noexcept { return false; }

    /// Of what it has the server keep, and tell again in the reply.
    [[nodiscard]] virtual std::size_t bytes_to_keep() const noexcept { return 0; }

    /// Appends the command. False: nothing is left to be sent, and `refused` is not called.
    [[nodiscard]] virtual bool write(std::string& out, core::instant now, outcome told) = 0;

    /// The reply. True: done. False: it is to be sent once more.
    [[nodiscard]] virtual bool answered(const reply& told, outcome after) = 0;

    /// Was not sent, and never will be.
    virtual void refused(const trouble& why, outcome told) = 0;
    /// Was sent, and no reply will come.
    virtual void lost(const trouble& why, outcome told) = 0;
};

}  // namespace dibs::store::redis
