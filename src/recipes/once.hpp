// SPDX-License-Identifier: Apache-2.0
#pragma once
// Once per slot: a job runs once for each planned time, however many hosts fire for it, and however
// late.
//
// A lock alone cannot do that: a host that fires after the first one has finished finds it free and
// runs again. So the outcome is kept as the result of the key `JOB@SLOT`, and a mark "started" is
// written in the same step as the grant.
//
//   (nothing) ──grant──▶ started ──▶ done            for as long as it is kept
//                         │  ▲ │
//        holder gone: a   │  │ └───▶ failed ──attempts used up──▶ failed for good
//        new grant at once└──┘          └──after the back-off: a new grant──▶ started
//
// At least once: a crash between the effect and the outcome repeats the effect. With `at_most_once`
// a slot that was started is never granted again; a crash loses it. A lost lease leaves "started",
// never "done".
//
// Thread safety: none; it lives on the executor.

#include "core/environment.hpp"
#include "recipes/mutex.hpp"
#include "recipes/slot_record.hpp"

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

namespace dibs::recipes {

struct once_terms {
    std::string job;
    std::string slot;
    mutex_terms acquire;   ///< `wait`: for the outcome, or for a turn; its mark is ours
    unsigned retries = 0;  ///< how many failed runs may be followed by another
    core::microseconds backoff =
        std::chrono::minutes{1};  ///< after the first failure; doubles each time, up to an hour
    bool at_most_once = false;
    core::microseconds keep = std::chrono::hours{7 * 24};  ///< how long the outcome is kept
    core::party who;
};

enum class once_verdict : std::uint8_t {
    granted,  ///< run it
    done,     ///< it was run, with success
    failed,   ///< it failed, and nobody will run it again
    waiting,  ///< it failed and will be run again after its back-off
    running,  ///< somebody is at it
    blocked,  ///< an operator's hold is in force
    trouble,  ///< see `error`
};

struct once_outcome {
    once_verdict verdict = once_verdict::trouble;
    lease_ptr lease;
    slot_record mine;                        ///< granted: as it was written
    std::optional<slot_record> found;        ///< what was kept before
    std::vector<core::holder_info> holders;  ///< running
    std::string blocked_reason;
    core::microseconds retry_after{};  ///< waiting
    std::error_code error;
    std::string detail;
};

class once {
  public:
    class call;
    using call_ptr = std::shared_ptr<call>;
    using completion = core::unique_function<void(once_outcome)>;
    /// Milliseconds since 1970, to be written down for people.
    using calendar = std::function<std::int64_t()>;

    once(core::environment env, store::store& through, mutex& keys, calendar now);
    ~once();
    once(const once&) = delete;
    once& operator=(const once&) = delete;

    /// `done` is called once, never inside this call.
    call_ptr claim(once_terms terms, completion done);
    void cancel(const call_ptr& which, errc why = errc::cancelled);

    /// The run has ended. `released` tells that its outcome is kept; without an error and without
    /// that, the lease was lost, and the run counts as one that never ended.
    void finish(const lease_ptr& lease,
                const once_terms& terms,
                slot_record mine,
                bool success,
                int status,
                mutex::release_completion done);

    /// The key's record as it stands: what a claim would find. Reads alone.
    void look(const std::string& key, core::unique_function<void(core::page)> done);

  private:
    void begin(const call_ptr& which);
    void ask(const call_ptr& which);
    [[nodiscard]] bool put_off_by_hold(const call_ptr& which, const core::page& found);
    void found_record(const call_ptr& which, core::page page);
    void acquired(const call_ptr& which, mutex_outcome outcome);
    bool settled_by(const call_ptr& which, const core::kept_result& kept, bool nobody_holds);
    void give_back_and_retry(const call_ptr& which,
                             const lease_ptr& lease,
                             const core::kept_result& found);
    [[nodiscard]] core::nanoseconds wait_left(const call& which) const;
    void fail(const call_ptr& which, std::error_code error, std::string detail);
    void end(const call_ptr& which, once_outcome outcome);

    core::environment env_;
    store::store& store_;
    mutex& keys_;
    calendar now_;
};

}  // namespace dibs::recipes
