// SPDX-License-Identifier: Apache-2.0
#pragma once
// Work that is asked for several times and done once: the first answer is kept under the request's key, and told to
// whoever asks again.
//
//   nothing kept ──grant, with the mark "begun"──▶ begun ──finish(answer)──▶ done, or failed for good
//        ▲                                          │  │
//        └───────── abandoned: nothing is kept ─────┘  └─ its process is gone: ─▶ begun once more (at least once)
//                                                                             ─▶ in doubt for good (at most once)
//
// The mark is as fresh as a result, so a store that has either refuses the grant and tells what it has, in one step: what
// was begun with another fingerprint is never written over. Only who has read a mark without a holder, and may repeat the
// work, asks to pass over that one mark (`seen`).
//
// At least once: a crash between the effect and the answer repeats the effect, and so does a lease that was lost
// meanwhile. With `at_most_once` the mark stays in the way.
//
// Thread safety: none; it lives on the executor.

#include "core/batcher.hpp"
#include "core/environment.hpp"
#include "recipes/idempotent_record.hpp"
#include "recipes/mutex.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

namespace dibs::recipes {

struct idempotent_terms {
    std::string key;
    std::string fingerprint;  ///< of what is asked for; kept as it is
    mutex_terms acquire;      ///< `wait`: for the answer of another one; mark and seen are ours
    core::microseconds keep = std::chrono::hours{7 * 24};  ///< of the answer, and of the mark
    bool at_most_once = false;
    core::party who;
};

enum class idempotent_verdict : std::uint8_t {
    granted,    ///< do it
    answered,   ///< it was done, or failed for good: `found`
    in_flight,  ///< somebody is at it
    blocked,    ///< an operator's hold is in force
    differs,    ///< the key was used for something else
    in_doubt,   ///< it was begun, has not told how it ended, and may be done once only: `found`
    trouble,    ///< see `error`
};

struct idempotent_outcome {
    idempotent_verdict verdict = idempotent_verdict::trouble;
    lease_ptr lease;
    idempotent_record mine;                  ///< granted: as it was written
    std::optional<idempotent_record> found;  ///< what is kept
    std::vector<core::holder_info> holders;  ///< in_flight
    std::string blocked_reason;
    core::microseconds retry_after{};  ///< blocked
    std::error_code error;
    std::string detail;
};

class idempotent {
  public:
    class call;
    using call_ptr = std::shared_ptr<call>;
    using completion = core::unique_function<void(idempotent_outcome)>;
    /// Milliseconds since 1970, to be written down for people.
    using calendar = std::function<std::int64_t()>;

    idempotent(core::environment env, core::batcher& batches, mutex& keys, calendar now);
    ~idempotent();
    idempotent(const idempotent&) = delete;
    idempotent& operator=(const idempotent&) = delete;

    /// `done` is called once, never inside this call. The caller keeps what it gets until then.
    call_ptr claim(idempotent_terms terms, completion done);
    void cancel(const call_ptr& which, errc why = errc::cancelled);

    /// The work has ended: `mine` with state, status and answer is kept. Also after the lease has ended, as long as
    /// nobody else was granted the key. `released` tells that it is kept. Requires: this object outlives the completion.
    void finish(const lease_ptr& lease,
                const idempotent_terms& terms,
                idempotent_record mine,
                mutex::release_completion done);

    /// The work has ended without an answer: whoever asks again does it.
    void abandon(const lease_ptr& lease, mutex::release_completion done);

  private:
    struct ended;
    using ended_ptr = std::shared_ptr<ended>;

    void ask(const call_ptr& which, core::nanoseconds wait);
    [[nodiscard]] core::nanoseconds left_of(const call& which) const;
    void acquired(const call_ptr& which, mutex_outcome outcome);
    void granted(const call_ptr& which, mutex_outcome outcome);
    void refused(const call_ptr& which, mutex_outcome outcome);
    [[nodiscard]] bool settled_by(const call_ptr& which,
                                  const core::kept_result& kept,
                                  bool nobody_holds);
    void wait_or_tell(const call_ptr& which, mutex_outcome outcome);
    void keep_late(const ended_ptr& which);
    void leave_late(const ended_ptr& which);
    void fail(const call_ptr& which, std::error_code error, std::string detail);
    void end(const call_ptr& which, idempotent_outcome outcome);

    core::environment env_;
    core::batcher& batcher_;
    mutex& keys_;
    calendar now_;
};

}  // namespace dibs::recipes
