// SPDX-License-Identifier: Apache-2.0
#pragma once
// The connections of a store, and what goes over them: one for work; one for renewals, which listens
// for waiters too, takes batches while the first one is at another and nothing has to be renewed,
// and is made when it is needed first. Each carries one statement at a time. When leases are advisory
// locks, there is one for all. Who touches them when: store/remote/leader.hpp.
//
// After a cut: what was sent is lost (the outcome unknown), what was not is sent again once the
// server is back, or refused at its deadline or when the server cannot be reached.
//
// Thread safety: any thread, except where it says otherwise.

#include "core/environment.hpp"
#include "store/postgres/link.hpp"
#include "store/postgres/request.hpp"
#include "store/postgres/statements.hpp"
#include "store/postgres/steps.hpp"
#include "store/record/watch_book.hpp"
#include "store/remote/announcements.hpp"
#include "store/remote/inbox.hpp"
#include "store/remote/leader.hpp"
#include "store/remote/patience.hpp"
#include "store/remote/urgency.hpp"
#include "store/store.hpp"

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace dibs::store::postgres {

using remote::letters;
using remote::urgency;

class engine final : public remote::leader {
  public:
    engine(core::environment env,
           const address& where,
           std::shared_ptr<const caller> self,
           std::shared_ptr<mailbox> box,
           remote::announcements outside);

    /// Blocks until the server has greeted and the tables are there, or not.
    [[nodiscard]] trouble start();
    /// Wake-ups come through the server. Known once it has started.
    [[nodiscard]] bool listens() const noexcept { return !pooled_; }

    void submit(urgency how, std::unique_ptr<request> what);
    void subscribe(std::string key, watch_book::stay which);
    void unsubscribe(std::string key);

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
    using inbox = remote::inbox<request, change>;
    using queue = std::deque<std::unique_ptr<request>>;
    struct channel {
        channel(const address& where,
                const statements& texts,
                std::string listens_to,
                session* kept = nullptr)
            : by(where, texts, std::move(listens_to), kept) {}
        link by;
        bool used = false;                ///< it was ready since it was opened
        std::unique_ptr<request> flight;  ///< sent, and not answered
        bool lent = false;                ///< what is in flight is of the other connection's queue
        core::instant sent{};
        remote::patience again;     ///< when it may be opened
        unsigned looks_passed = 0;  ///< requests that went before waiting looks
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
    [[nodiscard]] bool only_watches() const noexcept override;
    [[nodiscard]] bool asked() const noexcept override;
    [[nodiscard]] std::array<pollfd, 2> awaited() const noexcept override;
    void hear(const std::array<pollfd, 2>& seen, core::instant now, letters& told) override;
    void finish(letters& told) override;
    void let_go() noexcept override;

    /// The connection that listens: the only one, when it keeps locks.
    [[nodiscard]] channel& listening() noexcept { return self_->own ? work_ : ear_; }
    [[nodiscard]] const channel& listening() const noexcept { return self_->own ? work_ : ear_; }

    // For the leader alone.
    [[nodiscard]] request::outcome after(core::instant now, letters& told) noexcept;
    void take_next();
    void keep(channel& which, core::instant now, letters& told);
    void fill(channel& which, core::instant now, letters& told);
    [[nodiscard]] queue* next_queue(channel& which, core::instant now) noexcept;
    [[nodiscard]] bool wanted(const channel& which) const noexcept;
    [[nodiscard]] bool serves(const channel& which, std::size_t at) const noexcept;
    [[nodiscard]] bool lends(const channel& which, std::size_t at) const noexcept;
    [[nodiscard]] bool takes(const channel& which,
                             std::size_t at,
                             const request& one) const noexcept;
    void became_ready(channel& which, letters& told);
    void hear_one(channel& which, core::instant now, letters& told);
    void tell_losses(letters& told);
    void notified(std::string of, core::instant now, letters& told);
    void let_arrive(channel& which, letters& told);
    void broke(channel& which, core::instant now, letters& told);
    void refuse_late(core::instant now, letters& told);
    void refuse_waiting(std::size_t at, const trouble& why, letters& told);
    void apply(const std::vector<change>& wishes);
    void ask_to_watch(std::vector<std::string> keys);
    void ask_to_unwatch(std::vector<std::string> keys);
    void watched(const std::vector<std::string>& keys, std::error_code outcome, letters& told);
    void not_watched(std::error_code why, letters& told);
    void keep_ear_alive(core::instant now);
    [[nodiscard]] bool nothing_queued() const noexcept;
    void say_farewell();

    const address where_;
    const statements texts_;
    const std::shared_ptr<const caller> self_;
    const remote::announcements outside_;

    inbox inbox_;                                 ///< under the lock
    inbox collected_;                             ///< on its way out of there
    std::vector<std::unique_ptr<request>> next_;  ///< what follows from what was answered

    channel work_;
    channel ear_;  ///< and renewals; not used when the leases are locks of `work_`
    queue queues_[3];
    bool pooled_ = false;
    std::map<std::string, listener> listeners_;
    bool ever_watched_ = false;
};

}  // namespace dibs::store::postgres
