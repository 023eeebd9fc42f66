// SPDX-License-Identifier: Apache-2.0
#pragma once
// Turns what many callers want at a moment into few steps of the store. While a batch is under way,
// what comes in is collected; it goes out as one when that batch is answered, or earlier when it
// has become worth a step of its own, so that the store need not wait for the callers either. A
// lone caller's batch holds one entry and leaves at once.
//
// Thread safety: none; it lives on the executor.

#include "core/batch.hpp"
#include "core/environment.hpp"

#include <deque>
#include <memory>
#include <vector>

namespace dibs::core {

/// What a caller is told about its entry.
struct reply {
    answer given;
    instant sent{};     ///< read before the batch left; the store's ttl starts no earlier
    bool final = true;  ///< false: the patience is over and the outcome unknown; the true answer
                        ///< may still follow
};

class batcher {
    struct pending;

  public:
    /// Told once, or twice when the first reply is not final.
    using completion = unique_function<void(reply&&)>;

    /// Names an entry that may not have been sent yet.
    class ticket {
      public:
        ticket() = default;

      private:
        friend class batcher;
        explicit ticket(std::weak_ptr<pending> entry) noexcept : entry_(std::move(entry)) {}
        std::weak_ptr<pending> entry_;
    };

    batcher(environment env, batch_target& target);
    ~batcher();
    batcher(const batcher&) = delete;
    batcher& operator=(const batcher&) = delete;

    /// Queues an entry. It is answered within `patience` (at most 5 s) of being sent, and not sent
    /// after `give_up`: it is then refused with errc::timed_out. Renewals travel on their own lane;
    /// releases go before acquires. With `linger` it may wait for so long until a batch is full.
    ticket submit(verb&& what,
                  nanoseconds patience,
                  instant give_up,
                  completion&& done,
                  nanoseconds linger = nanoseconds::zero());

    /// Takes an entry back that was not sent: true, and its completion is never called. False: it
    /// was sent, and its completion tells.
    bool cancel(const ticket& which) noexcept;

    /// Entries that were sent and have no final answer.
    [[nodiscard]] std::size_t in_flight() const noexcept { return in_flight_; }
    [[nodiscard]] bool idle() const noexcept;

    /// Refuses everything that was not sent, and what comes later.
    void close();

  private:
    struct flight;
    struct lane_state {
        lane_state(lane which, batcher& mine)
            : name(which), linger([this, &mine] { mine.post_flush(*this); }) {}
        const lane name;
        std::deque<std::shared_ptr<pending>> first;   ///< releases, renewals
        std::deque<std::shared_ptr<pending>> second;  ///< acquires and the rest
        unsigned under_way = 0;  ///< flights that are neither answered nor out of patience
        std::vector<std::shared_ptr<flight>> spares;  ///< answered, for the next batches
        bool flush_posted = false;
        timer linger;  ///< armed while a batch waits to be full

        [[nodiscard]] std::size_t waiting() const noexcept { return first.size() + second.size(); }
        /// There is room beside the flights that are under way.
        [[nodiscard]] bool may_leave() const noexcept;
        /// Until when the one that came first waits for others; those that wait for nobody come
        /// before it.
        [[nodiscard]] instant leaves_at() const noexcept;
    };

    lane_state& lane_of(const verb& what) noexcept;
    void leave_or_linger(lane_state& which);
    void post_flush(lane_state& which);
    void flush(lane_state& which);
    std::shared_ptr<flight> empty_flight(lane_state& which);
    /// False: the batch is full.
    bool take(std::deque<std::shared_ptr<pending>>& from,
              std::vector<std::shared_ptr<pending>>& into,
              std::size_t& payload,
              instant now);
    void answered(const std::shared_ptr<flight>& batch, answers given);
    void out_of_patience(const std::shared_ptr<flight>& batch);
    void free_lane(const std::shared_ptr<flight>& batch);

    environment env_;
    batch_target& target_;
    lane_state renewals_{lane::renewals, *this};
    lane_state others_{lane::others, *this};
    std::size_t in_flight_ = 0;
    bool closed_ = false;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace dibs::core
