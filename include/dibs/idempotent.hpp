// SPDX-License-Identifier: Apache-2.0
#pragma once
// Idempotency keys for work whose effect is not in a database of one's own: client::idempotent(). Where it is, let the
// transaction keep the answer (dibs::postgres::idempotent): effect and answer are one commit there, and two steps here.
//
//   auto told = client.idempotent("order-4711", request_body, [&](const dibs::idempotent_call& call) {
//       return charge(request_body, "order-4711");   // give the key on
//   });
//   respond(told.how == dibs::idempotent_result::outcome::in_flight ? "409" : told.answer);

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <stop_token>
#include <string>

namespace dibs {

/// The longest answer that is kept.
inline constexpr std::size_t idempotent_answer_bytes_max = 1 << 20;

struct idempotent_options {
    /// How long the lease lasts under which the work is done; it is renewed. So much later another one may do it when
    /// this process dies or is cut off.
    std::chrono::milliseconds ttl = std::chrono::seconds{30};

    /// How long to wait for another one who is at it. Zero: it is told at once. `forever` is allowed.
    std::chrono::milliseconds wait = std::chrono::milliseconds::zero();

    /// How long one try may take until it is an error, also when the store never answers. A call that waits goes on
    /// until its wait is over, unless it is in doubt whether the work was begun.
    std::chrono::milliseconds timeout = std::chrono::seconds{5};

    /// How long the answer is kept, by the store's clock: longer than anybody repeats the request. After that the key is a
    /// new one. `forever` is allowed.
    std::chrono::milliseconds keep = std::chrono::hours{7 * 24};

    /// Work that was begun and has not told how it ended is refused as long as it is kept (errc::work_in_doubt), instead
    /// of being done again. Whatever it throws is kept as its answer, since it may have had its effect. A grant whose
    /// answer was lost on its way counts as begun.
    bool at_most_once = false;
};

/// What the work is given.
struct idempotent_call {
    std::uint64_t fence = 0;  ///< of the lease under which it is done
    unsigned attempt =
        1;  ///< 2 and more: an earlier one ended without a word, and may have had its effect
    std::stop_token lost;  ///< requested when the lease is lost: another one may begin
};

struct idempotent_result {
    enum class outcome {
        done,      ///< the work was done here, and its answer is kept
        replayed,  ///< it had been done; this is what was answered then
        in_flight  ///< somebody else is at it, or an operator has put the key on hold; nothing was done
    };
    outcome how = outcome::in_flight;
    std::string answer;
};

/// To be thrown by work whose failure is its answer ("card declined"): it is kept, and thrown again to whoever asks
/// again. Also what an answer that is too long to be kept, or at_most_once, makes of the end of the work.
class kept_failure : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

namespace detail {

using idempotent_work = std::function<std::string(const idempotent_call&)>;

template <typename Work>
[[nodiscard]] idempotent_work as_work(Work& work) {
    return [&work](const idempotent_call& with) -> std::string {
        if constexpr (std::invocable<Work&, const idempotent_call&>) {
            return work(with);
        } else {
            return work();
        }
    };
}

}  // namespace detail

}  // namespace dibs
