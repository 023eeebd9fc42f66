// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the mutex knows of a call and of a key. For the mutex's own sources alone.

#include "recipes/mutex.hpp"

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace dibs::recipes {

using core::instant;
using core::nanoseconds;

/// After a try that failed; twice as long after each.
inline constexpr nanoseconds retry_first = core::milliseconds{10};
/// Whoever gave a key back while others waited stands aside for this long, or a woken waiter would
/// never be the first.
inline constexpr nanoseconds stand_aside = core::milliseconds{5};
/// The timer behind a wait whose wake-up should come from the store.
inline constexpr nanoseconds net_with_wakes = std::chrono::seconds{2};
/// The same where the store cannot wake.
inline constexpr nanoseconds net_without_wakes = core::milliseconds{100};

/// The timer behind the wait of one who is to be woken. A grant without a fence is a lock of another
/// program, which tells nobody when it lets go.
[[nodiscard]] inline core::nanoseconds net_behind_wakes(const core::answer& given) noexcept {
    const bool silent = !given.holders.empty() && given.holders.front().fences.first == 0;
    return silent ? net_without_wakes : net_with_wakes;
}

/// How long a ticket lives without being asked for again: so long does a dead head hold up those
/// behind it where the store does not notice a death.
inline constexpr nanoseconds ticket_time = std::chrono::seconds{6};
/// How often all tickets of the process are asked for again, in one batch.
inline constexpr nanoseconds beat_every = ticket_time / 3;

class mutex::call {
  public:
    call(mutex& mine, std::string name, mutex_terms agreed, completion told)
        : key(std::move(name)),
          terms(std::move(agreed)),
          queues(terms.queue && waits()),
          done(std::move(told)),
          alarm([this, &mine] {
              if (const auto self = me.lock()) {
                  mine.on_timer(self);
              }
          }) {}

    [[nodiscard]] bool waits() const noexcept { return terms.wait > nanoseconds::zero(); }

    const std::string key;
    const mutex_terms terms;
    const bool queues;  ///< waits in the store's queue, by a ticket of its own
    completion done;
    core::timer alarm;
    std::weak_ptr<call> me;
    place_ptr where;

    core::holder_id holder;
    instant wait_until{};
    instant timeout_at{};
    instant last_sent{};
    std::optional<core::store_instant> last_not_after;
    bool unbounded = false;  ///< some try had no not_after
    core::batcher::ticket ticket;
    unsigned unanswered = 0;  ///< tries that may still be answered
    bool trying = false;      ///< the latest try has no reply yet
    bool may_hold = false;    ///< some try may have been granted without our knowing
    bool stood_off = false;   ///< the store has said that somebody else has the key
    bool not_ready = false;   ///< the store has said that it grants nothing yet
    bool in_line = false;
    bool watched = false;  ///< the latest try was sent while a watch held
    bool finished = false;
    call_list::iterator listed;  ///< in mutex::calls_, until finished
    unsigned failures =
        0;               ///< tries without a good answer, since the store last said who has the key
    mutex_outcome last;  ///< what stood in the way; in the end, how the call ended
    std::weak_ptr<core::lease_state> lease;
    core::fence_number granted = 0;  ///< of the lease that its caller got, wherever that is by now

    // With `queues`.
    call_list::iterator in_queue;  ///< in mutex::queue_, until finished
    std::uint64_t number = 0;      ///< of its ticket, as last heard; 0: none
    std::uint64_t wakes_seen = 0;  ///< when the latest try was sent
    instant asked_at{};            ///< the latest try
};

struct mutex::place {
    explicit place(std::string name, mutex& mine)
        : key(std::move(name)), alarm([this, &mine] {
              if (const auto self = me.lock()) {
                  mine.advance(self);
              }
          }) {}

    const std::string key;
    place_entry<place> entry;
    std::weak_ptr<place> me;
    std::list<call_ptr> line;  ///< callers who wait, in the order in which they came
    unsigned calls = 0;        ///< under way, those that do not wait included
    lease_ptr current;         ///< the exclusive lease that this process holds
    core::fence_block block;   ///< of its grant
    instant granted_at{};      ///< that grant, however often the lease was handed on since
    nanoseconds round_trip{};  ///< that it took
    unsigned hops = 0;
    unsigned giving_back = 0;         ///< releases under way
    unsigned giving_shares_back = 0;  ///< of shares: these keep nobody from asking
    instant aside_until{};
    core::timer alarm;

    enum class watch_stage : std::uint8_t { none, asked, ready, failed } watch = watch_stage::none;
    store::watch_id watch_id = 0;
    store::watch_id notices_id = 0;  ///< hears of grants with which word was left
    bool woken = false;              ///< since the latest try of the line was sent
    std::uint32_t watchers = 0;      ///< as the latest answer told
    instant watch_until{};           ///< when to stop watching if nobody stands in the line by then

    unsigned queued = 0;                        ///< calls that wait in the store's queue
    std::map<std::uint64_t, call_ptr> tickets;  ///< those that are known to stand in it
    std::uint64_t wakes = 0;
};

}  // namespace dibs::recipes
