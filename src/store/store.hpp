// SPDX-License-Identifier: Apache-2.0
#pragma once
// The interface of a store, and its specification. A new store is written from this file and
// core/verbs.hpp alone, and is right when the conformance suite (tests/conformance/) passes.
//
// THE RECORD. Per key a store keeps: the largest fence granted; the live grants (holder id, fences,
// weight, attached or detached, when granted, when it expires, who); at most one result or mark; at
// most one operator's hold; the queue, that is, tickets in the order of arrival (holder id, number,
// who, since when, until when). A key that was never written is a record with fence 0 and nothing
// else.
//
// ATOMIC. Each verb of a batch is one atomic step: no other step, of this process or another, falls
// between its check and its effect, and a reader sees all of it or nothing.
//
// TIME. Expiry is decided by the store's own clock (`store_now::lease`), read once per step or per
// batch, after the step has begun to exclude others. A grant is live while `now.lease < expires`. A
// client's clock is never stored or compared. Fences, results and holds use `store_now::wall`. A
// store whose server has one clock for both says so in its capabilities (`steady_expiry`).
//
// acquire. In this order:
//   1. executed later than `not_after`                                   -> too_late
//   2. this holder id has a live grant: its ttl starts anew              -> granted, same fences
//   3. holders are alive and agreed on another capacity, and neither that
//      one nor the one asked for is 1                                    -> failed, effect no,
//                                                                           capacity_differs
//   4. an operator's hold is in force                                    -> blocked
//   5. the weights of the live grants plus this one exceed the smaller
//      of both capacities                                                -> held
//   6. a result is fresh and its fence > `seen`                          -> done
//   7. the oldest live ticket is another holder's                        -> held
//   8. the store may not grant for now                                   -> not_ready
//   9. otherwise the grant is given: fences by core::next_fences, and
//      `mark` replaces the result                                        -> granted
//   Every one of these answers carries the kept result, if any, and the fence that wrote it, as it
//   was found: a grant whose own mark replaces it tells what was there before.
//   Exclusive fences order the grants of a key; those of shared grants identify only. Who asks for
//   a capacity of 1 wants the key for itself alone, whatever others divide it into: so writers and
//   plain mutexes are one thing, and a lock of another program keeps readers out.
//   With `queue`, 4, 5, 7 and 8 enter the holder at the tail, or prolong the ticket that it has, and
//   the answer tells its number and position. Without, they change no ticket. 6 and 9 end it.
// renew.
//   A live grant of this holder: the ttl starts anew; `adopt` changes its holder id and
//   attachment; `fences` > 0 extends the end of its block by up to so many, never beyond the
//   clock                                                                -> renewed
//   Where 8 of acquire is so, an `adopt` with another holder id, since the
//   same may have been done before and forgotten                         -> not_ready
//   Otherwise                                                            -> not_held, with the loss
// release.
//   A live grant of this holder ends                                     -> released, or finished
//                                                                           with the result
//   An expired one whose fence is still the record's largest, with `late` -> finished
//   Otherwise                                                            -> not_held, with the loss
//   Of a grant that was not `traced` a store may know nothing once it expired: then neither of
//   both is told of it, but not_held with loss::gone.
//   A ticket of this holder ends in any case.
//   A release without a result leaves a mark as it is.
// revoke.
//   The live grant whose block contains the fence ends                   -> revoked
//   Otherwise                                                            -> fence_moved
// block.
//   The hold is set, replaced or lifted                                  -> block_set
//
// THE QUEUE. A ticket is live while `now.lease < until`; one whose time was over has lost its place,
// also when nobody passed it. A store that knows that the process which asked is gone takes its
// tickets for dead. Numbers rise with arrival, per key; they need not be without gaps, and may begin
// anew when the queue is empty. Whoever races (`queue` 0) gets the key when no ticket is live. Each
// step costs O(log n) in the length of the queue, positions beyond `position_exact` are not counted,
// and an acquire or release on a key without a queue costs what it would cost if there were none.
//
// FENCES RISE, per key, in the order of the grants: across restart, eviction, failover and restore,
// provided that the store's wall clock is not behind the last grant that was lost. The largest
// fence is in the record or below the clock; a record may be purged once it is free, has no result,
// no hold, no waiters and its fence is a second below the wall clock, since blocks reach back from
// the clock.
//
// DURABILITY. An acknowledged result, mark or hold survives power loss. A bare grant need not, if
// its loss cannot let a second holder in: a store that may lose grants must tell in its
// capabilities.
//
// BATCHES. `execute` takes at most `max_batch_entries` entries and answers each, in their order, in
// one call of the completion. Entries are independent: an error of one never fails or aborts
// another. A store that cannot promise this for a step splits the batch and tries again. Renewals
// and releases of a batch are executed before its acquires. A key that occurs twice is executed
// twice, in that order. Several batches may be under way at once; the store executes waiting
// renewal batches before others.
//
// EFFECT. Each answer says yes, no or unknown. A store that is not sure says unknown. After
// effect::no the step is never executed later. An entry whose deadline has passed before it was
// begun is refused with errc::timed_out and effect::no. Trouble of the store is never told as held,
// done or not_held. A store that finds out that others use another one in its place answers
// renewals and releases not_held with loss::replaced, and refuses everything else.
//
// WATCHING. `watch` first registers, then calls `ready`; a release after that calls `wake`.
// Spurious wakes are allowed; a lost one is covered by the caller's timer. When many wait, a store
// wakes at least one process per release, and another one when that one stops watching without
// having taken the key. While a ticket is live, what ends a grant, lifts a hold, or ends the ticket
// of the head of a free key wakes the watchers of the process of the new head, and no other process
// on purpose. So does an acquire that 7 refuses: whoever finds a free key reminds its head, unless
// that is of its own process. A result may wake everybody, since it may be of use to all. Nobody is woken because a time is over.
// Where the capabilities say `wakes_all`, every process that watches is woken, and each is told
// whether the step was one of its own: whoever goes on watching keeps no wake from anybody.
//
// NOTICES. An acquire with `notify` that is answered held with `will_notify` has left word with the
// grant in its way, in the same step: the release or revocation of that grant calls the `wake` of
// the asking process's `await_notices` of the key, whoever else is woken, and whoever is first in a
// queue. So there is no moment at which the end of the grant goes unheard, and nothing to be
// undone. Word ends with the grant, also when that expires, of which nobody is told; and it may get
// lost with a connection: the caller's timer stands behind it, as behind a watch. A store need not
// take word (shares, locks of others, too many already); without `will_notify` none was left.
//
// THREADS. All members are called on the executor of the environment, except where they say
// otherwise; completions and callbacks run on it too, never inside the call that was given them.
// After `close` returned no callback runs, except the completions of batches under way, which are
// answered unknown or no before it.

#include "core/batch.hpp"
#include "core/environment.hpp"
#include "core/verbs.hpp"
#include "store/finding.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dibs::store {

/// Truths about a store that the client and the conformance suite go by.
struct capabilities {
    std::string_view name;         ///< "sqlite"
    core::microseconds ttl_min{};  ///< a smaller one is refused by the client
    core::microseconds ttl_max{};  ///< a larger one is refused by the client
    bool wakes = false;            ///< a release wakes watchers without polling
    bool wakes_all = false;        ///< of every process, and tells each whether it was its own
    bool notifies = false;  ///< takes `notify`: the end of a grant tells those it was in the way of
    bool notices_death = false;     ///< attached grants end with their process
    bool shared = false;            ///< several holders by weight and capacity
    bool queues = false;            ///< keeps a queue; without it the client refuses `queue`
    bool keeps_grants = false;      ///< an acknowledged grant survives a restart of the store
    bool survives_restart = false;  ///< records outlive the last process that uses them
    bool steady_expiry = true;      ///< a step of the store's calendar moves no expiry
    bool expires = true;            ///< a grant ends by time; else with its session alone
    bool hands_over = true;         ///< grants may be detached and adopted by other processes
    std::string_view fence_source;  ///< "counter in the row and wall clock"
    std::string_view scope;         ///< whom it excludes: "this host, this user"
};

using core::answers;
using core::batch_completion;
using core::lane;
using core::max_batch_entries;
using page_completion = core::unique_function<void(core::page)>;
using watch_completion = core::unique_function<void(std::error_code)>;
/// Whose step wakes a watcher.
enum class wake_by : std::uint8_t { unknown, own_process, other_process };
using wake_callback = core::unique_function<void(wake_by)>;

/// Names one registration of a watcher. 0 is none.
using watch_id = std::uint64_t;

class store : public core::batch_target {
  public:
    /// Thread safety: any thread.
    [[nodiscard]] virtual const capabilities& caps() const noexcept = 0;

    /// Where it is, for people: its URL with the password blanked. Thread safety: any thread.
    [[nodiscard]] virtual const std::string& location() const noexcept = 0;

    void execute(lane which, std::vector<core::entry> batch, batch_completion done) override = 0;

    /// Registers a watcher of a key. `ready` is told once the registration holds (or why it does
    /// not: the caller's timers then do alone). `wake` may be called any number of times until
    /// `unwatch`.
    virtual watch_id watch(std::string_view key, watch_completion ready, wake_callback wake) = 0;
    virtual void unwatch(watch_id id) = 0;

    /// Hears of word that acquires with `notify` leave, of this store object, until `unwatch`. To be
    /// called before the first of them is asked. 0: this store takes no such word.
    virtual watch_id await_notices(std::string_view /*key*/, wake_callback /*wake*/) { return 0; }

    /// Records whose key starts with `prefix` and is greater than `after`, in key order, at most
    /// `limit`.
    virtual void list(std::string prefix,
                      std::string after,
                      std::size_t limit,
                      page_completion done) = 0;

    /// Tells, from now on, that grants of this store object may have ended in a way that it noticed
    /// by itself: whoever relies on one asks again (renew) and learns. Stores whose grants end by
    /// time alone need not tell anything.
    virtual void tell_doubts(std::function<void()>) {}

    /// Stops; answers what is under way. Idempotent.
    virtual void close() = 0;

    /// The descriptor whose copies keep the attached grants of this store object alive: they end
    /// early when the last copy is closed. Close-on-exec; whoever runs a child tree under a lease
    /// passes it on. -1: this store has none, or none before its first acquire. Thread safety: any
    /// thread.
    [[nodiscard]] virtual int liveness_descriptor() const noexcept { return -1; }

    /// What about its place, its settings and its records may let things go wrong. Empty: nothing
    /// to tell. Blocks for as long as its disk takes: for an operator's command, never on the
    /// executor. Thread safety: any thread, but not while `close` runs.
    [[nodiscard]] virtual std::vector<finding> diagnose() { return {}; }

    /// How many late writes and claims were refused under `key` by what guards the data in the same
    /// database: never too few. Empty: there is nothing of the kind. Blocks, as `diagnose`. Thread
    /// safety: as `diagnose`.
    [[nodiscard]] virtual std::optional<std::uint64_t> refused_writes(std::string_view) {
        return {};
    }

    // A blocking caller would pay two thread hops on a store that works in a thread of its own.
    // Instead it may lend its thread: between begin_assist and end_assist the store may leave work
    // for the calling thread, which runs it by assist() (false: nothing to do). end_assist hands
    // what is left to the store's own thread. Thread safety: any thread; the three on the same one.
    virtual void begin_assist() noexcept {}
    virtual bool assist() noexcept { return false; }
    virtual void end_assist() noexcept {}
};

}  // namespace dibs::store
