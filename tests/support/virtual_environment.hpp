// SPDX-License-Identifier: Apache-2.0
#pragma once
// A world for the core in which time passes only when the test says so: one thread, a queue of
// tasks, a queue of timers, randomness from a seed. Not for stores with threads of their own: see
// pumped_environment.hpp.
//
//   virtual_environment world;
//   thing under_test{world.view()};
//   world.advance(10s);                                       // fires what falls due, in order
//   ASSERT_TRUE(world.run_until([&] { return told; }, 1min));  // virtual minutes
//
// Thread safety: none, save that tasks may be posted from any thread.

#include "core/environment.hpp"
#include "support/manual_executor.hpp"
#include "support/manual_store_clock.hpp"
#include "support/seeded_entropy.hpp"
#include "support/timer_queue.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>

namespace dibs::testing {

class virtual_time final : public core::time_source {
  public:
    [[nodiscard]] core::instant now() const noexcept override { return now_; }
    void arm(core::timer& alarm, core::instant due) override { queue_.arm(*this, alarm, due); }
    void disarm(core::timer& alarm) noexcept override { queue_.disarm(alarm); }

    [[nodiscard]] std::size_t armed() const noexcept { return queue_.armed(); }

  private:
    friend class virtual_environment;
    core::instant now_{std::chrono::hours{5}};
    timer_queue queue_;
};

/// Callbacks of users run as tasks of their own, on the test's thread: never inside the code that
/// told of a loss, just as with a real notifier.
class posting_notifier final : public core::notifier {
  public:
    explicit posting_notifier(core::executor& exec) : exec_{exec} {}
    void notify(core::task work) override { exec_.post(std::move(work)); }

  private:
    core::executor& exec_;
};

class virtual_environment {
  public:
    explicit virtual_environment(std::uint64_t seed = 1) : random_{seed}, notices_{exec_} {}

    [[nodiscard]] core::environment view() noexcept { return {exec_, time_, random_, notices_}; }
    [[nodiscard]] manual_executor& exec() noexcept { return exec_; }
    [[nodiscard]] virtual_time& time() noexcept { return time_; }
    [[nodiscard]] core::entropy& random() noexcept { return random_; }

    /// The clock for a store in this world: `advance` moves it too.
    [[nodiscard]] manual_store_clock& store_clock() noexcept { return store_clock_; }

    [[nodiscard]] core::instant now() const noexcept { return time_.now(); }

    /// Runs all tasks that need no time to pass.
    void run_ready() {
        do {
            exec_.run_ready();
        } while (fire_due());
    }

    /// Lets `by` pass: tasks and timers run at their moments, in order.
    void advance(core::nanoseconds by) {
        const auto end = time_.now_ + by;
        run_ready();
        while (step(end)) {
        }
        move_to(end);
        run_ready();
    }

    /// The process sleeps for `by`: nothing runs meanwhile, everything that fell due runs
    /// afterwards.
    void sleep_through(core::nanoseconds by) {
        move_to(time_.now_ + by);
        run_ready();
    }

    /// Lets time pass until `told` holds, at most `longest`. Returns whether it does.
    bool run_until(const std::function<bool()>& told, core::nanoseconds longest) {
        const auto end = time_.now_ + longest;
        for (;;) {
            if (told()) {
                return true;
            }
            if (exec_.run_one() || time_.queue_.fire_one(time_.now_)) {
                continue;
            }
            const auto due = time_.queue_.next_due();
            if (!due || *due > end) {
                move_to(end);
                return told();
            }
            move_to(*due);
        }
    }

  private:
    /// All that is due fires in one go, as it does on a real clock: tasks come afterwards.
    bool fire_due() {
        bool any = false;
        while (time_.queue_.fire_one(time_.now_)) {
            any = true;
        }
        return any;
    }

    bool step(core::instant end) {
        const auto due = time_.queue_.next_due();
        if (!due || *due > end) {
            return false;
        }
        move_to(*due);
        run_ready();
        return true;
    }

    void move_to(core::instant to) {
        // Parts of a microsecond are carried over, so that many small steps do not leave the
        // store's clock behind.
        const auto whole = [](core::instant at) {
            return std::chrono::floor<core::microseconds>(at.time_since_epoch());
        };
        const auto target = std::max(to, time_.now_);
        store_clock_.advance(whole(target) - whole(time_.now_));
        time_.now_ = target;
    }

    manual_executor exec_;
    virtual_time time_;
    seeded_entropy random_;
    posting_notifier notices_;
    manual_store_clock store_clock_;
};

}  // namespace dibs::testing
