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
//        holder gone, or  │  │ └───▶ failed ──attempts used up──▶ failed for good
//        interrupted: a   └──┘          └──after the back-off: a new grant──▶ started
//        new grant at once
//
// All of it is as fresh as a result, so a store that has something refuses the grant and tells what it has, in one step.
// Only who has read that, and may run the slot again, asks to pass over it (`seen`): so attempts are numbered without a
// gap, and no run is granted by what was there before another one.
//
// At least once: a crash between the effect and the outcome repeats the effect. With `at_most_once`
// a slot that was started is never granted again; a crash loses it. A run whose lease was lost has
// failed, never succeeded; where the store cannot be told so, or somebody has begun anew, "started" stays.
//
// How long it is remembered. The outcome of a planned slot (`begin_ms`) is kept until later slots of the job say that
// its time has passed (slot_memory.hpp); that of a slot named by hand for `keep` by the store's calendar clock, or for
// ever when it may be started once at most. So no clock that is ahead makes a planned slot, or one that is granted once
// at most, run again.
//
// Slots of a job may overlap, since each is a key of its own. With `in_turn` they do not: whoever finds a run of another slot
// going on does not start, or waits. Nothing is kept of that: a slot that nobody started is a missed one (due_slots.hpp).
//
// Thread safety: none; it lives on the executor.

#include "core/environment.hpp"
#include "recipes/lease_witness.hpp"
#include "recipes/mutex.hpp"
#include "recipes/once/slot_memory.hpp"
#include "recipes/once/slot_record.hpp"

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
    /// By somebody's order: what is known of the slot when it is looked at first is no reason not to run it, whatever it is.
    /// What another run leaves from then on counts.
    bool again = false;
    /// Not while a run of another slot of the job goes on that asked for the same: the lease on key_of_turn, taken before the
    /// slot and kept beside it.
    bool in_turn = false;
    core::microseconds keep = std::chrono::hours{7 * 24};  ///< of a slot named by hand
    std::optional<std::int64_t> begin_ms;                  ///< since 1970, of a planned slot
    /// Names the boot of this host. With it a back-off is counted by the clock that no one can set, as long as the same
    /// host asks; otherwise by the store's. Empty: unknown.
    std::string boot;
    core::party who;
    std::shared_ptr<lease_witness> witness;  ///< of the turn; may be empty
};

/// How long a slot that has failed so often waits until it may be tried again: `first` after the first time, then twice as
/// long each time, up to an hour.
[[nodiscard]] core::microseconds backoff_after(core::microseconds first,
                                               unsigned failures) noexcept;

enum class once_verdict : std::uint8_t {
    granted,    ///< run it
    done,       ///< it was run, with success
    failed,     ///< it failed, and nobody will run it again
    waiting,    ///< it failed and will be run again after its back-off
    running,    ///< somebody is at it
    overlaps,   ///< somebody is at another slot of the job, and this one is to be run in turn
    blocked,    ///< an operator's hold is in force
    forgotten,  ///< it lies so far back that it may have been run: see slot_memory.hpp
    trouble,    ///< see `error`
};

struct once_outcome {
    once_verdict verdict = once_verdict::trouble;
    lease_ptr lease;
    lease_ptr turn;                    ///< granted, with `in_turn`: to be given back after `lease`
    slot_record mine;                  ///< granted: as it was written
    std::optional<slot_record> found;  ///< what was kept before
    std::vector<core::holder_info> holders;  ///< running, overlaps
    std::string blocked_key;                 ///< blocked: the slot's, or the job's
    std::string blocked_reason;
    core::microseconds retry_after{};  ///< waiting, blocked
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

    /// `done` is called once, never inside this call. The caller keeps what it gets until then.
    call_ptr claim(once_terms terms, completion done);
    void cancel(const call_ptr& which, errc why = errc::cancelled);

    /// The run has ended. `released` tells that its outcome is kept. Without that and without an error
    /// the lease was lost: the run counts as failed, whatever it says itself, and that is left for the
    /// next one if the store can be told and nobody else has begun since.
    void finish(const lease_ptr& lease,
                const once_terms& terms,
                slot_record mine,
                bool success,
                int status,
                mutex::release_completion done);

    /// The run was ended from outside, through no fault of its own: as `finish`, but the slot is free at once and no
    /// retry is used up. Unless it may be started once at most: then that was it.
    void interrupt(const lease_ptr& lease,
                   const once_terms& terms,
                   slot_record mine,
                   int status,
                   mutex::release_completion done);

    /// A granted slot was not run after all: what was kept before (`found` of the grant) counts again.
    void withdraw(const lease_ptr& lease,
                  const once_terms& terms,
                  std::optional<slot_record> found,
                  mutex::release_completion done);

    /// The key's record as it stands: what a claim would find. Reads alone.
    void look(const std::string& key, core::unique_function<void(core::page)> done);

  private:
    void begin(const call_ptr& which);
    void ask(const call_ptr& which);
    void ask_for_turn(const call_ptr& which);
    void look_failed(const call_ptr& which, std::error_code error, std::string detail);
    void looks_are_over(const call_ptr& which);
    void give_turn_back(const call_ptr& which);
    [[nodiscard]] bool put_off_by_hold(const call_ptr& which, const core::page& found);
    void found_record(const call_ptr& which, core::page page);
    void ask_unless_forgotten(const call_ptr& which);
    void look_for_hold(const call_ptr& which);
    [[nodiscard]] bool wait_out(const call_ptr& which, core::microseconds left);
    void acquired(const call_ptr& which, mutex_outcome outcome);
    bool settled_by(const call_ptr& which, const core::kept_result& kept, bool nobody_holds);
    [[nodiscard]] core::nanoseconds wait_left(const call& which) const;
    [[nodiscard]] core::result_to_keep outcome_to_keep(const once_terms& terms,
                                                       slot_record& mine) const;
    void fail(const call_ptr& which, std::error_code error, std::string detail);
    void end(const call_ptr& which, once_outcome outcome);

    core::environment env_;
    store::store& store_;
    mutex& keys_;
    slot_memory memory_;
    calendar now_;
};

}  // namespace dibs::recipes
