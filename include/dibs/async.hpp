// SPDX-License-Identifier: Apache-2.0
#pragma once
// The calls that wait, in callback form: what <dibs/asio.hpp> is made of, and the way in for other
// event loops.

#include <dibs/client.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace dibs {

/// Told once how a call ended: on a thread of the client's, or of whoever works for it just then,
/// so it must not throw and must not block: a blocking call of the client or of a lease inside it
/// waits for itself.
class acquire_handler {
  public:
    virtual ~acquire_handler() = default;
    virtual void complete(std::error_code error, std::optional<lease> granted) = 0;

    /// What the client calls: by default the handler is told, and goes. One that lives on until its
    /// result was delivered elsewhere overrides this, and owns itself from then on.
    virtual void complete_and_go(std::error_code error, std::optional<lease> granted) {
        const std::unique_ptr<acquire_handler> going(this);
        complete(error, std::move(granted));
    }
};

/// As acquire_handler.
class acquire_all_handler {
  public:
    virtual ~acquire_all_handler() = default;
    virtual void complete(std::error_code error, std::optional<lease_set> granted) = 0;
    virtual void complete_and_go(std::error_code error, std::optional<lease_set> granted) {
        const std::unique_ptr<acquire_all_handler> going(this);
        complete(error, std::move(granted));
    }
};

/// As acquire_handler.
class release_handler {
  public:
    virtual ~release_handler() = default;
    virtual void complete(std::error_code error, release_outcome outcome) = 0;
    virtual void complete_and_go(std::error_code error, release_outcome outcome) {
        const std::unique_ptr<release_handler> going(this);
        complete(error, outcome);
    }
};

/// As acquire_handler.
class hand_over_handler {
  public:
    virtual ~hand_over_handler() = default;
    virtual void complete(std::error_code error, std::string text) = 0;
    virtual void complete_and_go(std::error_code error, std::string text) {
        const std::unique_ptr<hand_over_handler> going(this);
        complete(error, std::move(text));
    }
};

/// As acquire_handler.
class adopt_handler {
  public:
    virtual ~adopt_handler() = default;
    virtual void complete(std::error_code error, lease adopted) = 0;
    virtual void complete_and_go(std::error_code error, lease adopted) {
        const std::unique_ptr<adopt_handler> going(this);
        complete(error, std::move(adopted));
    }
};

namespace detail {
struct operation_access;
}

/// A call that may be cancelled, also before it is started. Copies name the same call. Destroying
/// it does not cancel the call.
class operation {
  public:
    operation();

    /// Asks the call to end with errc::cancelled; one that is already over stays as it is. A grant
    /// that arrives after this is given back by the client. Thread safety: any thread.
    void cancel() const noexcept;

    struct state;

  private:
    friend struct detail::operation_access;
    std::shared_ptr<state> state_;
};

/// `options.wait` zero: one try. Bad arguments are told through the handler too, then inside this
/// call. When the client is destroyed while the call is under way, it ends with errc::closed.
void start_acquire(client& through,
                   std::string_view key,
                   acquire_options options,
                   std::unique_ptr<acquire_handler> handler);

/// The same, as a call that may be cancelled.
void start_acquire(client& through,
                   std::string_view key,
                   acquire_options options,
                   std::unique_ptr<acquire_handler> handler,
                   const operation& call);

/// As client::acquire_all. May be cancelled by `call`.
void start_acquire_all(client& through,
                       std::vector<std::string> keys,
                       acquire_options options,
                       std::unique_ptr<acquire_all_handler> handler,
                       const operation& call = {});

/// The handle is empty afterwards.
void start_release(lease&& held, std::unique_ptr<release_handler> handler);

/// As lease::hand_over. With a text the handle holds nothing any more, as after a release; with an
/// error the lease stays with it, unless it is lost. The handle may be moved or destroyed meanwhile:
/// destroyed, it gives the lease back, and the call ends with an error. Ends within a sixth of the ttl, and cannot be cancelled.
void start_hand_over(lease& held, std::unique_ptr<hand_over_handler> handler);

/// As client::adopt. Bad arguments are told through the handler too, then inside this call. Ends
/// within `options.timeout` and a sixth of the ttl, and cannot be cancelled; of an outcome that is
/// unknown the client undoes in the background what it may have taken over, so the text may be
/// worthless then.
void start_adopt(client& through,
                 std::string_view handed_over,
                 acquire_options options,
                 std::unique_ptr<adopt_handler> handler);

}  // namespace dibs
