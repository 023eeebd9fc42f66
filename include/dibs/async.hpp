// SPDX-License-Identifier: Apache-2.0
#pragma once
// The calls that wait, in callback form: what <dibs/asio.hpp> is made of, and the way in for other event loops.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include <dibs/client.hpp>

namespace dibs {

/// Told once how a call ended. Called on a thread of the client's, or inside the call that started it never; must
/// not throw and must not block.
class acquire_handler {
  public:
    virtual ~acquire_handler() = default;
    virtual void complete(std::error_code error, std::optional<lease> granted) = 0;
};

/// As acquire_handler.
class release_handler {
  public:
    virtual ~release_handler() = default;
    virtual void complete(std::error_code error, release_outcome outcome) = 0;
};

/// A call under way. Destroying it does not cancel the call.
class operation {
  public:
    operation() noexcept = default;

    /// Asks the call to end with errc::cancelled; one that is already over stays as it is. A grant that arrives after
    /// this is given back by the client. Thread safety: any thread.
    void cancel() noexcept;

    struct state;
    explicit operation(std::shared_ptr<state> shared) noexcept : state_(std::move(shared)) {}

  private:
    std::shared_ptr<state> state_;
};

/// `options.wait` zero: one try. Bad arguments are told through the handler too. The client may be destroyed while the
/// call is under way; it then ends with errc::closed.
operation start_acquire(client& through,
                        std::string_view key,
                        acquire_options options,
                        std::unique_ptr<acquire_handler> handler);

/// The handle is empty afterwards.
void start_release(lease&& held, std::unique_ptr<release_handler> handler);

}  // namespace dibs
