// SPDX-License-Identifier: Apache-2.0
#pragma once
// Does the I/O of a store over two connections: one for work; one for renewals, which listens for
// waiters too and is made when it is needed first. Each carries one statement at a time. One thread
// at a time leads: the engine's own, or a caller's that lends itself and so pays no thread hop.
// Nothing but the leader touches the connections, except that a caller sends its request itself,
// under the lock, while nobody leads or the leader waits.
//
// After a cut: what was sent is lost (the outcome unknown), what was not is sent again once the
// server is back, or refused at its deadline or when the server cannot be reached.
//
// Thread safety: any thread, except where it says otherwise.

#include "core/environment.hpp"
#include "store/mailbox.hpp"
#include "store/postgres/link.hpp"
#include "store/postgres/request.hpp"
#include "store/postgres/statements.hpp"
#include "store/postgres/steps.hpp"
#include "store/record/watch_book.hpp"
#include "store/store.hpp"

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace dibs::store::postgres {

/// Which requests go first: renewals before others before looks.
enum class urgency : std::uint8_t { renewal, other, look };

class engine : public std::enable_shared_from_this<engine> {
  public:
    struct hooks {
        /// On the thread that leads: what tells the executor.
        std::function<core::task(std::string key, watch_book::stay, std::error_code)> entered;
        std::function<core::task(std::string key)> woken;
    };

    engine(core::environment env,
           const address& where,
           std::shared_ptr<const caller> self,
           std::shared_ptr<mailbox> box,
           hooks outside);
    ~engine();

    /// Blocks until the server has greeted and the tables are there, or not.
    [[nodiscard]] trouble start();
    /// Wake-ups come through the server. Known once it has started.
    [[nodiscard]] bool listens() const noexcept { return !pooled_; }

    void submit(urgency how, std::unique_ptr<request> what);
    void subscribe(std::string key, watch_book::stay which);
    void unsubscribe(std::string key);

    void begin_assist() noexcept;
    [[nodiscard]] bool assist() noexcept;
    void end_assist() noexcept;

    /// Answers everything; nothing is done after it.
    void stop();
    /// In a forked child: the thread is not there.
    void abandon();

  private:
    struct listener {
        watch_book::stay which = 0;
        bool told = false;  ///< that it was entered, or why not
    };
    struct change {
        bool begins = false;
        std::string key;
        watch_book::stay which = 0;
    };
    struct inbox {
        std::vector<std::unique_ptr<request>> requests[3];
        std::vector<change> changes;

        [[nodiscard]] bool empty() const noexcept {
            return requests[0].empty() && requests[1].empty() && requests[2].empty() &&
                   changes.empty();
        }
    };
    using queue = std::deque<std::unique_ptr<request>>;
    struct channel {
        channel(const address& where, const statements& texts, std::string listens_to)
            : by(where, texts, std::move(listens_to)) {}
        link by;
        bool used = false;                ///< it was ready since it was opened
        std::unique_ptr<request> flight;  ///< sent, and not answered
        core::instant sent{};
        core::instant again{};  ///< not to be opened before
        unsigned failures = 0;
        unsigned looks_passed = 0;  ///< requests that went before waiting looks
    };
    struct spoils {
        std::vector<core::task> letters;
        std::vector<std::unique_ptr<request>> next;
        [[nodiscard]] request::outcome at(core::instant now) { return {letters, next, now}; }
    };

    void work();
    void run_now(std::unique_lock<std::mutex>& held, core::nanoseconds longest);
    void call_leader(std::unique_lock<std::mutex> held);
    void ring() noexcept;
    [[nodiscard]] bool something_to_do() const noexcept;
    [[nodiscard]] trouble greet(channel& of);

    // For the leader alone.
    void turn(core::nanoseconds longest, spoils& got);
    void take_inbox(inbox some);
    void take_next(spoils& got);
    void act(core::instant now, spoils& got);
    void keep(channel& which, core::instant now, spoils& got);
    void fill(channel& which, core::instant now, spoils& got);
    [[nodiscard]] queue* next_queue(channel& which, core::instant now) noexcept;
    [[nodiscard]] bool wanted(const channel& which) const noexcept;
    [[nodiscard]] bool serves(const channel& which, std::size_t at) const noexcept;
    void became_ready(channel& which, spoils& got);
    void hear(channel& which, core::instant now, spoils& got);
    void broke(channel& which, core::instant now, spoils& got);
    void refuse_late(core::instant now, spoils& got);
    void refuse_waiting(std::size_t at, const trouble& why, spoils& got);
    void apply(const std::vector<change>& wishes);
    void ask_to_watch(std::vector<std::string> keys);
    void ask_to_unwatch(std::vector<std::string> keys);
    void watched(const std::vector<std::string>& keys, std::error_code outcome, spoils& got);
    void not_watched(std::error_code why, spoils& got);
    void keep_ear_alive(core::instant now);
    void wait(core::nanoseconds longest, spoils& got);
    [[nodiscard]] core::instant next_event() const noexcept;
    [[nodiscard]] bool idle() const noexcept;
    [[nodiscard]] bool nothing_queued() const noexcept;
    void note_state() noexcept;
    void after_failure(channel& of, core::instant now);
    void say_farewell();

    const core::environment env_;
    const address where_;
    const statements texts_;
    const std::shared_ptr<const caller> self_;
    const std::shared_ptr<mailbox> box_;
    const hooks outside_;
    int bell_ = -1;

    std::thread thread_;
    std::mutex lock_;
    std::condition_variable changed_;
    inbox inbox_;
    bool leading_ = false;
    bool polling_ = false;          ///< the leader waits, and touches nothing
    core::instant sleeps_until_{};  ///< it waits no longer than that
    bool idle_ = true;
    bool asked_ = false;  ///< an answer is to come, soon
    bool stopping_ = false;

    channel work_;
    channel ear_;  ///< and renewals
    queue queues_[3];
    bool pooled_ = false;
    std::map<std::string, listener> listeners_;
    bool ever_watched_ = false;
};

}  // namespace dibs::store::postgres
