// SPDX-License-Identifier: Apache-2.0
#pragma once
// The five verbs: what is asked of a store, and what it answers. Plain data; the rules are in
// store/store.hpp.
//
// A record is: a key, a fence, the grants that are alive on it, at most one result, and perhaps an
// operator's hold. Every answer says whether the step took effect: yes, no, or unknown. The three
// are never folded into one another.

#include "core/boxed.hpp"
#include "core/fence.hpp"
#include "core/holder_id.hpp"
#include "core/time.hpp"

#include <dibs/error.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace dibs::core {

/// Whether a grant ends early when the store can tell for certain that its process is gone.
enum class attachment : std::uint8_t {
    attached,  ///< ends with the process, or by expiry
    detached,  ///< ends by expiry alone: handles for scripts, leases on their way to another
               ///< process
};

/// How much of a key a holder takes. Exclusive is 1 of 1, and goes with no other holder; a semaphore
/// permit is 1 of N; a reader 1 of unlimited. The weights of the live holders never exceed the
/// capacity.
struct share {
    static constexpr std::uint32_t unlimited = std::numeric_limits<std::uint32_t>::max();
    std::uint32_t weight = 1;
    std::uint32_t capacity = 1;

    [[nodiscard]] bool exclusive() const noexcept { return capacity == 1; }

    friend bool operator==(const share&, const share&) = default;
};

/// A result, or a mark, on its way into a record.
struct result_to_keep {
    std::string value;
    microseconds fresh{};  ///< while fresh, an acquire is answered `done`; `forever` for ever
    microseconds keep{};   ///< how long it stays readable; at least `fresh`; `forever` for ever

    static constexpr microseconds forever = microseconds::max();
};

/// The result that a record holds.
struct kept_result {
    std::string value;
    fence_number fence = 0;     ///< of the grant that wrote it
    bool is_mark = false;       ///< written with the grant; no finish has replaced it yet
    bool fresh = false;         ///< at the time of the answer, and newer than `seen`
    microseconds age{};         ///< since it was written
    microseconds fresh_left{};  ///< 0 when no longer fresh
    microseconds keep_left{};
};

/// Who is behind a process of the store: told to people who find a key held.
struct party {
    std::string host;
    std::int64_t pid = 0;
    std::string user;
    std::string command;  ///< secrets blanked by the client
};

/// One who stands in the queue of a key, as shown to others. Never carries the holder id.
struct queued_info {
    party who;
    microseconds waiting_for{};
    bool self = false;  ///< asked through this very store object
};

/// A live holder, as shown to others. Never carries the holder id: that is the holder's secret.
struct holder_info {
    party who;
    fence_block fences;
    std::uint32_t weight = 1;
    attachment attached = attachment::attached;
    microseconds held_for{};
    microseconds remaining{};  ///< until expiry by the store's clock
    bool self = false;         ///< granted through this very store object
};

// --- what is asked -------------------------------------------------------------------------------

/// Take the key if nobody holds it, no operator blocks it and no fresh result is there. Asked again
/// by a holder that already has it, it starts the ttl anew and answers with the same fences.
struct acquire {
    std::string key;
    holder_id holder;
    microseconds ttl{};
    std::uint32_t fences = 1;  ///< how many are wanted; fewer may come, never none
    attachment attached = attachment::attached;
    bool traced = true;  ///< what became of it is known beyond its expiry: a late finish is taken,
                         ///< and a loss has its cause. Without, a store may know nothing of it then
    fence_number floor = 0;  ///< the fence must exceed this one too
    share part{};
    boxed<result_to_keep> mark;              ///< written in the same step as the grant
    fence_number seen = 0;                   ///< a result by a fence <= seen counts as not fresh
    std::optional<store_instant> not_after;  ///< refused when the store executes it later than this
    microseconds
        queue{};          ///< more than 0: when it cannot be granted, it stands in the queue of the
                          ///< key for so long, unless it is asked again; 0: it takes part in the
                          ///< race
    bool notify = false;  ///< when it is held: the end of the grant in the way tells this process
                          ///< (store::await_notices), where a store can do that
};

/// Prolong: the ttl starts anew at this step. Refused when the holder does not hold the key (any
/// more).
struct renew {
    std::string key;
    holder_id holder;
    microseconds ttl{};
    std::uint32_t fences = 0;  ///< how many further fences are wanted at the end of the block, for
                               ///< handing the lease on
    struct change {
        holder_id holder;  ///< the holder from now on; the old id holds nothing afterwards
        attachment attached = attachment::attached;
    };
    std::optional<change> adopt;  ///< adoption or detaching, in the same step
};

/// Give it back, with a result (finish) or without one.
struct release {
    std::string key;
    holder_id holder;
    boxed<result_to_keep> result;
    bool late = false;  ///< with a result: also after expiry, as long as no later grant was given
};

/// An operator ends the grant with this fence, whoever holds it.
struct revoke {
    std::string key;
    fence_number fence = 0;
};

/// An operator's hold: nobody may acquire until it is over. Live grants stay. A duration of 0 lifts
/// it.
struct block {
    std::string key;
    microseconds duration{};
    std::string reason;
};

using verb = std::variant<acquire, renew, release, revoke, block>;

[[nodiscard]] const std::string& key_of(const verb& what) noexcept;

/// One step of a batch. A store must not begin it after `deadline`; it then answers `effect::no`
/// with errc::timed_out.
struct entry {
    verb what;
    instant deadline;
};

// --- what is answered ----------------------------------------------------------------------------

enum class effect : std::uint8_t {
    yes,      ///< the step was executed, and this is its answer (also a refusal such as `held`)
    no,       ///< surely not executed, now or later
    unknown,  ///< may have been executed, or may still be
};

enum class verdict : std::uint8_t {
    failed,     ///< see `error` and `detail`; the only verdict with an effect other than yes
    granted,    ///< acquire: `fences`, `expires`
    held,       ///< acquire: `holders`; none: those in the queue come first
    done,       ///< acquire: a fresh result is there
    blocked,    ///< acquire: `reason`, `retry_after`
    not_ready,  ///< acquire, adopt: the store grants nothing for now; `retry_after`
    too_late,   ///< acquire: executed after `not_after`; surely not granted
    renewed,    ///< renew: `fences` of the grant, `expires`, `waiters`
    released,   ///< release without a result
    finished,   ///< release with one
    not_held,  ///< renew, release: this holder does not hold the key; `loss` says what became of it
    revoked,   ///< revoke: the grant with that fence is ended
    fence_moved,  ///< revoke: that fence is not the current one; `holders` says who holds the key
                  ///< now
    block_set,    ///< block
};

/// Why a holder holds nothing.
enum class loss : std::uint8_t {
    none,
    expired,   ///< its time ran out and nobody has the key
    taken,     ///< another grant was given since
    revoked,   ///< by an operator
    gone,      ///< the store does not know it (never granted, released, or its state was lost)
    replaced,  ///< the store itself was taken away: others use another one at its place, or none
};

/// The same as an error.
[[nodiscard]] errc reason_of(loss what) noexcept;

struct answer {
    verdict what = verdict::failed;
    effect took = effect::unknown;
    loss lost = loss::none;  ///< not_held
    bool waiters = false;    ///< renewed, released, finished: other processes wait for the key
    std::uint32_t watchers =
        0;  ///< held: processes that watch the key, where a release wakes all of them; 0: not known

    std::error_code error;  ///< with `failed`
    std::string detail;     ///< the store's own words, for people

    fence_block fences;     ///< granted, renewed: of this grant
    store_instant expires;  ///< granted, renewed: by the store's clock
    store_now now{};        ///< when the step was executed (effect::yes); a `released` may not say

    boxed<kept_result> result;  ///< in every answer to acquire, renew and release, if there is one
    std::vector<holder_info> holders;  ///< held, fence_moved
    microseconds
        retry_after{};   ///< blocked (until it ends), not_ready, held (until the first expiry)
    std::string reason;  ///< blocked
    std::uint64_t ticket = 0;    ///< held, blocked, not_ready: this holder's number in the queue;
                                 ///< rises with arrival. 0: it has none
    std::uint32_t position = 0;  ///< with `ticket`: 1 is the head; exact up to `position_exact`
    bool will_notify = false;  ///< held, and asked with `notify`: word was left. Otherwise a watch
                               ///< is needed to be woken
};

/// A position beyond this one is told as one more: counting a long queue at each heartbeat would
/// cost its square.
inline constexpr std::uint32_t position_exact = 1000;

/// An answer for a step that surely did not happen.
[[nodiscard]] answer refused(std::error_code error, std::string detail);
/// Holders agreed on one capacity, and another one was asked for.
[[nodiscard]] answer capacity_differs(std::uint32_t ruling, std::uint32_t asked);
/// An answer for a step that may have happened.
[[nodiscard]] answer in_doubt(std::string detail);

// --- what is there -------------------------------------------------------------------------------

/// Of how many in a queue a listing tells who they are.
inline constexpr std::uint32_t queue_shown = 100;

struct record_info {
    std::string key;
    fence_number fence = 0;  ///< the largest granted so far
    share part{};            ///< weight is meaningless here; capacity as the holders agreed
    std::vector<holder_info> holders;  ///< live ones
    std::uint32_t waiters = 0;         ///< processes that wait
    std::uint32_t queued = 0;          ///< those who stand in the queue
    std::vector<queued_info> queue;    ///< the first of them, in order, up to `queue_shown`
    boxed<kept_result> result;
    microseconds blocked_for{};  ///< 0: not blocked
    std::string blocked_reason;
};

struct page {
    std::vector<record_info> records;  ///< in key order
    bool more = false;                 ///< ask again with `after` = the last key
    std::error_code error;
    std::string detail;
};

}  // namespace dibs::core
