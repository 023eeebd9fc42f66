// SPDX-License-Identifier: Apache-2.0
#pragma once
// Who does the I/O of a store with connections to a server. One thread at a time leads: the store's
// own, or a caller's that lends itself and so pays no thread hop. Nothing but the leader touches the
// connections, except that a caller sends its request itself, under the lock, while nobody leads or
// the leader waits.
//
// What the connections are, what is sent over them and what comes back is the affair of the class
// that derives from this one (redis/engine.hpp, postgres/engine.hpp).

#include "core/environment.hpp"
#include "core/time.hpp"
#include "store/file_descriptor.hpp"
#include "store/mailbox.hpp"
#include "store/remote/spin.hpp"
#include "store/remote/urgency.hpp"

#include <poll.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace dibs::store::remote {

/// What tells callers their answers, on its way to the executor.
using letters = std::vector<core::task>;

/// A connection that breaks sooner is not made again at once.
inline constexpr core::nanoseconds flapping = std::chrono::milliseconds{500};
/// How often a connection that listens is asked whether anybody is there.
inline constexpr core::nanoseconds ping_every = std::chrono::seconds{10};

/// `ppoll` with a descriptor that may be -1.
/// Returns the events, 0 when there were none in time.
short wait_for(int descriptor, short events, core::nanoseconds longest) noexcept;

/// Thread safety: its public functions may be called by any thread.
class leader : public std::enable_shared_from_this<leader> {
  public:
    leader(const leader&) = delete;
    leader& operator=(const leader&) = delete;
    virtual ~leader();

    void begin_assist() noexcept;
    [[nodiscard]] bool assist() noexcept;
    void end_assist() noexcept;

    /// Answers everything; nothing is done after it.
    void stop();
    /// In a forked child: the thread is not there.
    void abandon();

  protected:
    using lock = std::unique_lock<std::mutex>;

    leader(core::environment env, std::shared_ptr<mailbox> box);

    /// Whether its descriptor could be had.
    [[nodiscard]] bool sound() const noexcept { return static_cast<bool>(bell_); }
    /// Starts the store's own thread. Before it, whoever opens the store uses the connections.
    void begin();

    /// Guards what came in and was not looked at.
    [[nodiscard]] lock enter() { return lock{guard_}; }
    /// Something came in, and whoever leads is to take it.
    void call_leader(lock held);
    /// The same for a request; if nobody is at it and `can_send`, the caller's own thread sends it.
    void send_or_call_leader(lock held, urgency how);

    // What follows is called by whoever leads, or by a caller's thread in its place.

    /// Under the lock.
    [[nodiscard]] virtual bool nothing_came_in() const noexcept = 0;
    /// Under the lock: moves what came in to where the leader alone sees it.
    virtual void collect() = 0;
    /// Takes what was collected.
    virtual void take_in() = 0;
    /// Does what can be done now: opens connections, sends, gives up what is late.
    virtual void act(core::instant now, letters& told) = 0;
    /// Whether the connection for such requests takes one now. Asked while the leader, if there is one,
    /// waits.
    [[nodiscard]] virtual bool can_send(urgency how) const noexcept = 0;
    /// As `act`, by a caller while the leader, if there is one, waits: what it waits for must stay.
    virtual void send(core::instant now, letters& told) = 0;
    /// Nothing is left of what `send` wrote: whoever waits need not wait for room, too.
    [[nodiscard]] virtual bool all_sent() const noexcept = 0;
    /// When something is to be done if nothing is heard until then.
    [[nodiscard]] virtual core::instant next_event() const noexcept = 0;
    /// Nothing is asked, and nobody listens.
    [[nodiscard]] virtual bool idle() const noexcept = 0;
    /// Not idle, but only since the end of a connection is to be noticed: that may begin a moment later.
    [[nodiscard]] virtual bool only_watches() const noexcept { return false; }
    /// An answer is to come, soon.
    [[nodiscard]] virtual bool asked() const noexcept = 0;
    /// What to wait for; the two connections, always in the same order.
    [[nodiscard]] virtual std::array<pollfd, 2> awaited() const noexcept = 0;
    /// What was waited for. A caller may have closed a connection, and opened another, since.
    virtual void hear(const std::array<pollfd, 2>& seen, core::instant now, letters& told) = 0;
    /// At the end, when nobody leads any more: answers everything and closes the connections.
    virtual void finish(letters& told) = 0;
    /// In a forked child: lets go of the connections without a word to the server.
    virtual void let_go() noexcept = 0;

    const core::environment env_;

  private:
    void work();
    [[nodiscard]] bool wait_for_work(lock& held);
    void run_now(lock& held, core::nanoseconds longest);
    void turn(core::nanoseconds longest, letters& told);
    void wait(core::nanoseconds longest, letters& told);
    [[nodiscard]] int look(std::span<pollfd> at, core::instant until) noexcept;
    [[nodiscard]] bool something_to_do() const noexcept;
    [[nodiscard]] bool is_to_watch() const noexcept;
    void note_state() noexcept;
    void ring() noexcept;

    const std::shared_ptr<mailbox> box_;
    const file_descriptor bell_;

    std::thread thread_;
    std::mutex guard_;
    std::condition_variable changed_;
    bool leading_ = false;
    bool polling_ = false;          ///< the leader waits, and touches nothing
    core::instant sleeps_until_{};  ///< it waits no longer than that
    bool idle_ = true;
    bool only_watches_ = false;
    bool asked_ = false;
    bool dozes_ = false;       ///< our thread looks again soon, without being told
    std::uint64_t turns_ = 0;  ///< so far, by whomever
    bool stopping_ = false;
    spin spin_;                    ///< of whoever leads
    std::atomic<int> callers_{0};  ///< that wait for answers, and may lend their thread
};

}  // namespace dibs::store::remote
