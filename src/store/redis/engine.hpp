// SPDX-License-Identifier: Apache-2.0
#pragma once
// The connections of a store, and what goes over them: one for requests, pipelined, and one that
// listens for waiters, made when somebody waits. A notice comes by the first one, where the protocol
// has room for it: so its subscription is in time for the request behind it, without an answer in
// between. Who touches them when: store/remote/leader.hpp.
//
// After a cut: what was written is lost (the outcome unknown), what was not is sent again once the
// server is back, or refused at its deadline or when the server cannot be reached.
//
// Thread safety: any thread, except where it says otherwise.

#include "core/environment.hpp"
#include "store/record/watch_book.hpp"
#include "store/redis/link.hpp"
#include "store/redis/names.hpp"
#include "store/redis/request.hpp"
#include "store/remote/announcements.hpp"
#include "store/remote/inbox.hpp"
#include "store/remote/leader.hpp"
#include "store/remote/patience.hpp"
#include "store/remote/urgency.hpp"
#include "store/store.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace dibs::store::redis {

using remote::letters;
using remote::urgency;

class engine final : public remote::leader {
  public:
    engine(core::environment env,
           const address& where,
           std::shared_ptr<mailbox> box,
           remote::announcements outside,
           names where_kept,
           std::string_view process);

    /// Blocks until the server has greeted, or not.
    [[nodiscard]] remote::trouble start();

    void submit(urgency how, std::unique_ptr<request> what);
    void subscribe(std::string channel, std::string key, watch_book::stay which);
    void unsubscribe(std::string channel);

    /// Whether the server counts this process among those that hear a channel. For requests, on the
    /// thread that does the I/O.
    [[nodiscard]] bool listens(std::string_view channel) const noexcept;

    /// Somebody waits for notices, or nobody does any more.
    void expect_notices(bool any) noexcept { expects_notices_ = any; }
    /// Whether the server tells this process of locks with which it leaves word from now on. For
    /// requests, as above.
    [[nodiscard]] bool hears_notices() const noexcept {
        return notices_ == hearing::asked || notices_ == hearing::holds;
    }

  private:
    enum class hearing : std::uint8_t { not_asked, asked, holds, refused, given_up };

    struct listener {
        std::string key;
        watch_book::stay which = 0;
        bool told = false;   ///< that it was entered, or why not
        bool holds = false;  ///< the server has entered it
    };
    struct change {
        bool begins = false;
        std::string channel;
        listener wanted;
    };
    using inbox = remote::inbox<request, change>;
    struct flight {
        std::unique_ptr<request> what;  ///< null: the subscription to notices, or its end
        std::uint64_t begins = 0;       ///< in the bytes of the connection
        core::instant sent{};
        urgency how = urgency::other;
    };
    struct confirmation {
        std::string channel;
        bool begins = false;
    };

    // remote::leader
    [[nodiscard]] bool nothing_came_in() const noexcept override;
    void collect() override;
    void take_in() override;
    void act(core::instant now, letters& told) override;
    [[nodiscard]] bool can_send(urgency how) const noexcept override;
    void send(core::instant now, letters& told) override;
    [[nodiscard]] bool all_sent() const noexcept override;
    [[nodiscard]] core::instant next_event() const noexcept override;
    [[nodiscard]] bool idle() const noexcept override;
    [[nodiscard]] bool asked() const noexcept override;
    [[nodiscard]] std::array<pollfd, 2> awaited() const noexcept override;
    void hear(const std::array<pollfd, 2>& seen, core::instant now, letters& told) override;
    void finish(letters& told) override;
    void let_go() noexcept override;

    // For the leader alone.
    [[nodiscard]] request::outcome after(letters& told) noexcept;
    void take_next();
    void keep_data(core::instant now, letters& told);
    void keep_ear(core::instant now, letters& told);
    void hear_data(core::instant now, letters& told);
    void hear_pushed(const reply& pushed, letters& told);
    void make_ready_for(const request& next, core::instant now, letters& told);
    void note_size_of_answer(core::instant now, letters& told);
    void subscribe_to_notices(core::instant now);
    void give_notices_up(core::instant now, letters& told);
    void answered_about_notices(hearing how);
    void note_cut_of_notices(core::instant now);
    void hear_ear(letters& told);
    [[nodiscard]] wake_by by(const reply& message) const noexcept;
    void refuse_to_listen(std::string_view why, letters& told);
    void data_broke(core::instant now, letters& told);
    void ear_broke(core::instant now, letters& told);
    void refuse_late(core::instant now, letters& told);
    void refuse_waiting(const trouble& why, letters& told);
    void apply(change wish);
    [[nodiscard]] bool ear_settled() const noexcept;
    [[nodiscard]] std::size_t in_flight(urgency how) const noexcept;
    [[nodiscard]] trouble cut(const link& broken) const;

    const address where_;
    const remote::announcements outside_;
    const names names_;
    const std::string own_channel_;      ///< tells of one of the other channels, by its name
    const std::string notices_channel_;  ///< the same, on the connection for requests

    inbox inbox_;                                 ///< under the lock
    inbox collected_;                             ///< on its way out of there
    std::vector<std::unique_ptr<request>> next_;  ///< what follows from what was answered

    link data_;
    remote::patience data_again_;
    bool data_used_ = false;
    std::deque<std::unique_ptr<request>> queues_[3];
    std::deque<flight> flights_;
    hearing notices_ = hearing::not_asked;
    bool answers_are_large_ = false;     ///< for a connection that is subscribed
    core::instant notices_again_at_{};   ///< not before, since the last such connection was cut
    core::nanoseconds notices_pause_{};  ///< that was made then
    std::atomic<bool> expects_notices_{false};

    link ear_;
    remote::patience ear_again_;
    bool ear_used_ = false;
    std::map<std::string, listener, std::less<>> listeners_;
    std::deque<confirmation> confirmations_;
    core::instant ear_asked_{};
    bool ping_open_ = false;
};

}  // namespace dibs::store::redis
