// SPDX-License-Identifier: Apache-2.0
#pragma once
// client::idempotent in its two halves, in callback form: ask whether the work is to be done, and say how it ended. What
// async_idempotent of <dibs/asio.hpp> is made of, and the way in for other event loops.

#include <dibs/async.hpp>
#include <dibs/idempotent.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace dibs {

namespace detail {
struct idempotent_turn_access;
}

/// Work that is to be done here, under a lease that is renewed. It ends by start_finish, start_fail or start_give_up. One
/// that is destroyed instead counts as begun and not ended, as if the process had died: another one does the work again,
/// or is told errc::work_in_doubt with at_most_once. Thread safety: none; it may be moved between threads.
class idempotent_turn {
  public:
    idempotent_turn() noexcept;
    idempotent_turn(idempotent_turn&& other) noexcept;
    idempotent_turn& operator=(idempotent_turn&& other) noexcept;
    ~idempotent_turn();

    /// False: there is nothing to do, or it was ended.
    [[nodiscard]] explicit operator bool() const noexcept { return state_ != nullptr; }

    /// What the work is given. Requires: true.
    [[nodiscard]] const idempotent_call& call() const noexcept;

  private:
    friend struct detail::idempotent_turn_access;
    struct state;
    std::unique_ptr<state> state_;
};

struct idempotent_claim {
    enum class outcome {
        to_do,     ///< see `turn`
        replayed,  ///< it had been done: `answer`
        failed,    ///< it had failed for good: `answer` is what kept_failure said
        in_flight  ///< somebody else is at it, or an operator has put the key on hold
    };
    outcome how = outcome::in_flight;
    std::string answer;
    idempotent_turn turn;
};

/// As acquire_handler.
class idempotent_handler {
  public:
    virtual ~idempotent_handler() = default;
    virtual void complete(std::error_code error, idempotent_claim claim) = 0;
    virtual void complete_and_go(std::error_code error, idempotent_claim claim) {
        const std::unique_ptr<idempotent_handler> going(this);
        complete(error, std::move(claim));
    }
};

/// Asks whether the work of `key` is to be done. May be cancelled by `call`. Bad arguments are told through the handler too,
/// then inside this call. Errors as of client::idempotent, errc::fingerprint_differs and errc::work_in_doubt among them;
/// with one, nothing was begun, except that with condition::outcome_unknown it may count as begun.
void start_idempotent(client& through,
                      std::string_view key,
                      std::string_view fingerprint,
                      const idempotent_options& options,
                      std::unique_ptr<idempotent_handler> handler,
                      const operation& call = {});

/// The work is done: gives the key back and keeps the answer, late if need be, as long as nobody else was granted the key.
/// Told `released` when it is kept. Otherwise the work was done all the same, and whoever asks again may do it again:
/// not_held without an error means that somebody else has begun. An answer longer than idempotent_answer_bytes_max is
/// replaced by a failure that says so: errc::invalid_argument. The turn is empty afterwards; an empty one is told not_held.
void start_finish(idempotent_turn&& turn,
                  std::string answer,
                  std::unique_ptr<release_handler> handler);

/// The work has failed, and that is its answer (kept_failure): as start_finish.
void start_fail(idempotent_turn&& turn,
                std::string failure,
                std::unique_ptr<release_handler> handler);

/// The work has failed, and whoever asks again does it: gives the key back and keeps nothing. As start_finish.
void start_give_up(idempotent_turn&& turn, std::unique_ptr<release_handler> handler);

}  // namespace dibs
