// SPDX-License-Identifier: Apache-2.0
#pragma once
// The mutex: one holder per key, with or without waiting; and those who share a key, by weight and
// capacity: permits of a semaphore, readers. Policy over acquire, watch and release; renewing is the
// watchdog's.
//
// Of one process, one caller per key goes to the store; the others stand in a local line and are
// handed the lease. Callers that want the order of arrival (`queue`) have a ticket each in the
// store's queue, do not stand in that line, and are never handed a lease; their tickets are kept
// alive together (mutex_queue.cpp). A share stands in the same line, but is held beside others: the
// next of the line goes to the store as soon as the one before it has its answer, and no share is
// ever handed on, nor is a lease handed on to one who wants a share. Waiting is registered before the check that finds the key held, and a timer
// stands behind every wait, so a lost wake-up costs time and nothing else. Where the store can do it,
// who waits for what another one leaves is registered by the very step that finds the key held, and
// watches nothing.
//
// Thread safety: none; it lives on the executor.

#include "core/batcher.hpp"
#include "core/environment.hpp"
#include "core/hand_on.hpp"
#include "core/lease_state.hpp"
#include "core/recycling_allocator.hpp"
#include "core/undo.hpp"
#include "core/watchdog.hpp"
#include "recipes/place_table.hpp"
#include "store/store.hpp"

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

namespace dibs::recipes {

using lease_ptr = std::shared_ptr<core::lease_state>;

struct mutex_terms {
    core::lease_terms lease;
    core::nanoseconds wait{};     ///< zero: one try
    core::nanoseconds timeout{};  ///< until a call without any definite answer is an error
    core::fence_number fence_floor = 0;
    core::share part{};  ///< more than one holder: of a key that is shared
    /// Without a wait, but for one who waits until then: see mutex::failed.
    core::instant patient_until = core::instant::min();
    bool queue = false;  ///< wait in the order of the store's queue; without effect without `wait`
    core::boxed<core::result_to_keep>
        mark;                     ///< written with the grant; such a lease is never handed on
    core::fence_number seen = 0;  ///< a result by a fence up to this one is not fresh
    bool awaits_result =
        false;  ///< what another one leaves is as good as the key; with a mark it is
};

/// How an acquire ended. Without a lease and without an error somebody else has the key.
struct mutex_outcome {
    lease_ptr lease;
    std::error_code error;
    std::string detail;                      ///< the store's words
    std::vector<core::holder_info> holders;  ///< who has it
    std::string blocked_reason;              ///< an operator's hold is in force
    bool blocked = false;
    bool done = false;         ///< a fresh result is there
    bool queue_first = false;  ///< nobody had the key: those in its queue come first
    core::microseconds retry_after{};
    core::boxed<core::kept_result>
        result;            ///< as the last answer found it: before a mark of this call replaced it
    core::instant sent{};  ///< when that answer was asked for; none for a lease that was handed on
};

struct release_reply {
    bool released = false;  ///< false without an error: it was not held any more
    std::error_code error;
    std::string detail;
};

struct mutex_trouble {
    std::error_code error;
    std::string detail;
};

struct mutex_counters {
    std::uint64_t granted = 0;
    std::uint64_t busy = 0;
    std::uint64_t released = 0;
    std::uint64_t handed_on = 0;
};

class mutex {
  public:
    class call;
    using call_ptr = std::shared_ptr<call>;
    using call_list = std::list<call_ptr, core::recycling_allocator<call_ptr>>;
    using completion = core::unique_function<void(mutex_outcome&&)>;
    using release_completion = core::unique_function<void(release_reply)>;

    mutex(core::environment env,
          store::store& through,
          core::batcher& batches,
          core::watchdog& dog,
          core::undo& doubts);
    ~mutex();
    mutex(const mutex&) = delete;
    mutex& operator=(const mutex&) = delete;

    /// Requires: key and terms were checked. `done` is called once, never inside this call.
    call_ptr acquire(std::string key, mutex_terms terms, completion done);

    /// Ends a call with errc::cancelled (or `why`); does nothing when it is over. A grant that
    /// comes later is undone.
    void cancel(const call_ptr& which, errc why = errc::cancelled);

    /// Gives a lease back, to the next caller of this process or to the store.
    void release(const lease_ptr& lease, release_completion done);

    /// Gives a lease back to the store and leaves a result in the same step. Tried again while the
    /// lease lasts when the store gives no good answer; `released` tells that the result is kept.
    void release(const lease_ptr& lease, core::result_to_keep result, release_completion done);

    /// The watchdog found that a lease is lost.
    void lost(const lease_ptr& lease);

    /// Begins to guard a lease that came by adoption, by a request sent at `sent`.
    void adopted(const lease_ptr& lease, core::instant sent);

    /// Ends a lease here without ending it in the store: another process has it from now on. False:
    /// it was not held.
    [[nodiscard]] bool give_away(const lease_ptr& lease);

    /// Cancels every call.
    void close();

    [[nodiscard]] const mutex_counters& counters() const noexcept { return counters_; }
    /// What the latest try of a call for the key was answered with, if that was no good answer: an error and the store's
    /// words. No error: there is no such call.
    [[nodiscard]] mutex_trouble trouble_with(const std::string& key) const;
    /// For who looks at a key before it asks for it: what that failed of. No error: of nothing any more.
    void note_trouble(const std::string& key, mutex_trouble what);
    /// Keys that are held, waited for or being given back here.
    [[nodiscard]] std::size_t known_keys() const noexcept { return places_.size(); }

  private:
    struct giving;    // a release without a result, under way
    struct farewell;  // a release with a result, under way
    struct place;     // what this process knows of one key
    using place_ptr = std::shared_ptr<place>;

    place_ptr place_of(const std::string& key);
    void forget_if_idle(const place_ptr& where);
    void advance(const place_ptr& where);
    void attempt(const call_ptr& which, core::instant now);
    void answered(const call_ptr& which, const core::reply& heard);
    [[nodiscard]] bool in_use(const call& which);
    [[nodiscard]] lease_ptr lease_of(const call& which);
    [[nodiscard]] static std::optional<core::store_instant> not_after_of(const call& which);
    void granted(const call_ptr& which, const core::reply& heard);
    void stood_off(const call_ptr& which, const core::reply& heard);
    void failed(const call_ptr& which, const core::reply& heard);
    [[nodiscard]] bool known_held(const call& which) const;
    [[nodiscard]] core::instant limit(const call& which) const;
    [[nodiscard]] static bool alone_here(const place& where, const call& which);
    void arm_for_end(const call_ptr& which, core::instant now);
    void end_overdue(const place_ptr& where);
    void wait_for_wake(const call_ptr& which, core::nanoseconds at_most);
    void retry_in(const call_ptr& which, core::nanoseconds pause);
    void on_timer(const call_ptr& which);
    void finish(const call_ptr& which, mutex_outcome&& outcome);
    void give_up(const call_ptr& which);
    void settle_doubt(const call_ptr& which);
    void start_watching(const place_ptr& where);
    void stop_watching(place& where);
    void await_notices(const place_ptr& where);
    void await_no_notices(place& where);
    void woken(const place_ptr& where, store::wake_by whose);
    void watch_no_longer(const place_ptr& where);
    [[nodiscard]] bool sits_out(const place& where);
    [[nodiscard]] std::uint32_t draw();
    void enter_queue(const call_ptr& which);
    void leave_queue(const call_ptr& which);
    void note_ticket(const call_ptr& which, const core::answer& given);
    void wait_in_queue(const call_ptr& which, const core::answer& given, core::nanoseconds left);
    void try_first_in_queue(const place_ptr& where);
    void keep_tickets_alive();
    bool hand_on(const place_ptr& where, const lease_ptr& lease, core::instant now);
    void give_back(const place_ptr& where,
                   const lease_ptr& lease,
                   core::instant now,
                   release_completion done);
    void given_back(giving& which, const core::reply& heard);
    void send_farewell(const std::shared_ptr<farewell>& which);
    void farewell_answered(const std::shared_ptr<farewell>& which, const core::reply& heard);
    void learn_clock(const core::reply& heard);
    [[nodiscard]] std::optional<core::store_instant> not_after(core::instant until) const;
    [[nodiscard]] core::nanoseconds spread(core::nanoseconds pause);

    core::environment env_;
    store::store& store_;
    core::batcher& batcher_;
    core::watchdog& watchdog_;
    core::undo& undo_;
    place_table<place> places_;
    call_list calls_;  ///< under way; nobody else need keep them
    call_list queue_;  ///< of those, the ones that wait in a queue of the store
    std::map<std::string, mutex_trouble> noted_;
    core::timer beat_;
    std::list<std::shared_ptr<farewell>> farewells_;
    mutex_counters counters_;
    std::uint64_t random_ = 0;
    bool closed_ = false;

    struct clock_sight {
        core::store_instant store;
        core::instant local;  ///< not later than when the store's clock said so
    };
    std::optional<clock_sight> clock_;
};

}  // namespace dibs::recipes
