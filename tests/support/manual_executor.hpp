// SPDX-License-Identifier: Apache-2.0
#pragma once
// An executor that runs tasks when the test says so, on the thread of the test.
// Thread safety: `post` from any thread, the rest from one thread.

#include "core/environment.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace dibs::testing {

class manual_executor final : public core::executor {
  public:
    void post(core::task work) override {
        {
            const std::lock_guard guard{mutex_};
            queue_.push_back(std::move(work));
        }
        posted_.notify_one();
    }

    /// Runs the task at the head of the queue. False: there is none.
    bool run_one() {
        auto work = take();
        if (!work) {
            return false;
        }
        (*work)();
        return true;
    }

    /// Runs tasks, those that they post included, until none is left. Returns how many.
    std::size_t run_ready() {
        std::size_t ran = 0;
        while (run_one()) {
            ++ran;
        }
        return ran;
    }

    [[nodiscard]] std::size_t queued() const {
        const std::lock_guard guard{mutex_};
        return queue_.size();
    }

    /// Waits, in real time, until a task is there. False: none came in time.
    bool wait_for_task(std::chrono::steady_clock::duration longest) {
        std::unique_lock guard{mutex_};
        return posted_.wait_for(guard, longest, [this] { return !queue_.empty(); });
    }

  private:
    std::optional<core::task> take() {
        const std::lock_guard guard{mutex_};
        if (queue_.empty()) {
            return std::nullopt;
        }
        auto work = std::move(queue_.front());
        queue_.pop_front();
        return work;
    }

    mutable std::mutex mutex_;
    std::condition_variable posted_;
    std::deque<core::task> queue_;
};

}  // namespace dibs::testing
