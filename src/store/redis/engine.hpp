// SPDX-License-Identifier: Apache-2.0
#pragma once
// Does the I/O of a store: one connection for requests, pipelined, and one that listens for waiters,
// made when somebody waits. One thread at a time leads: the engine's own, or a caller's that lends
// itself and so pays no thread hop. Nothing but the leader touches the connections, except that a
// caller writes its request itself, under the lock, while nobody leads or the leader waits.
//
// After a cut: what was written is lost (the outcome unknown), what was not is sent again once the
// server is back, or refused at its deadline or when the server cannot be reached.
//
// Thread safety: any thread, except where it says otherwise.

#include "core/environment.hpp"
#include "store/mailbox.hpp"
#include "store/record/watch_book.hpp"
#include "store/redis/link.hpp"
#include "store/redis/request.hpp"
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

namespace dibs::store::redis {

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
           std::shared_ptr<mailbox> box,
           hooks outside,
           std::string own_channel);
    ~engine();

    /// Blocks until the server has greeted, or not.
    [[nodiscard]] trouble start();

    void submit(urgency how, std::unique_ptr<request> what);
    void subscribe(std::string channel, std::string key, watch_book::stay which);
    void unsubscribe(std::string channel);

    void begin_assist() noexcept;
    [[nodiscard]] bool assist() noexcept;
    void end_assist() noexcept;

    /// Answers everything; nothing is done after it.
    void stop();
    /// In a forked child: the thread is not there.
    void abandon();

  private:
    struct listener {
        std::string key;
        watch_book::stay which = 0;
        bool told = false;  ///< that it was entered, or why not
    };
    struct change {
        bool begins = false;
        std::string channel;
        listener wanted;
    };
    struct inbox {
        std::vector<std::unique_ptr<request>> requests[3];
        std::vector<change> changes;

        [[nodiscard]] bool empty() const noexcept {
            return requests[0].empty() && requests[1].empty() && requests[2].empty() &&
                   changes.empty();
        }
    };
    struct flight {
        std::unique_ptr<request> what;
        std::uint64_t begins = 0;  ///< in the bytes of the connection
        core::instant sent{};
        urgency how = urgency::other;
    };
    struct confirmation {
        std::string channel;
        bool begins = false;
    };
    /// When to try a connection again.
    struct patience {
        core::instant until{};
        unsigned failures = 0;
    };
    struct spoils {
        std::vector<core::task> letters;
        std::vector<std::unique_ptr<request>> next;
        [[nodiscard]] request::outcome as_outcome() { return {letters, next}; }
    };

    void work();
    void run_now(std::unique_lock<std::mutex>& held, core::nanoseconds longest);
    void call_leader(std::unique_lock<std::mutex> held);
    [[nodiscard]] bool something_to_do() const noexcept;

    // For the leader alone.
    void turn(core::nanoseconds longest, spoils& got);
    void take_inbox(inbox some);
    void take_next(spoils& got);
    void act(core::instant now, spoils& got);
    void keep_data(core::instant now, spoils& got);
    void keep_ear(core::instant now, spoils& got);
    void send(core::instant now, spoils& got);
    void hear_data(spoils& got);
    void hear_ear(spoils& got);
    void refuse_to_listen(std::string_view why, spoils& got);
    void data_broke(core::instant now, spoils& got);
    void ear_broke(core::instant now, spoils& got);
    void refuse_late(core::instant now, spoils& got);
    void refuse_waiting(const trouble& why, spoils& got);
    void apply(change wish);
    void wait(core::nanoseconds longest, spoils& got);
    [[nodiscard]] core::instant next_event() const noexcept;
    [[nodiscard]] bool idle() const noexcept;
    [[nodiscard]] bool ear_settled() const noexcept;
    void note_state() noexcept;
    [[nodiscard]] std::size_t in_flight(urgency how) const noexcept;
    void after_failure(patience& of, core::instant now);
    [[nodiscard]] trouble cut(const link& broken) const;

    const core::environment env_;
    const address where_;
    const std::shared_ptr<mailbox> box_;
    const hooks outside_;
    const std::string own_channel_;  ///< tells of one of the other channels, by its name
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

    link data_;
    patience data_again_;
    bool data_used_ = false;
    std::deque<std::unique_ptr<request>> queues_[3];
    std::deque<flight> flights_;

    link ear_;
    patience ear_again_;
    bool ear_used_ = false;
    std::map<std::string, listener> listeners_;
    std::deque<confirmation> confirmations_;
    core::instant ear_asked_{};
    bool ping_open_ = false;
};

}  // namespace dibs::store::redis
