// SPDX-License-Identifier: Apache-2.0
#pragma once
// The executor of the real client. It has no thread: whoever posts to an idle executor runs what is
// queued, so a lone caller pays no thread hop and a store's worker delivers its answers itself.

#include "client/host/brief_mutex.hpp"
#include "core/environment.hpp"

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace dibs::detail {

class serial_executor final : public core::executor {
  public:
    /// `hand_over` wakes a thread that calls run_handed_over(): a caller that has run many tasks of
    /// others passes the rest on, so that its own call returns; one that is a task of another
    /// executor passes on all. It is called with a lock held, and must not call back.
    explicit serial_executor(std::function<void()> hand_over) : hand_over_(std::move(hand_over)) {}

    /// The executor must live until the call returns, also when a task lets go of what owns it.
    void post(core::task work) override;
    void leave(core::task work) override;
    void run_left() override;

    /// Runs what a busy caller has passed on; does nothing when nobody has.
    void run_handed_over();

    /// From now on nothing is passed on. To be called before the thread that takes it over ends,
    /// which must call run_handed_over() once more after this.
    void keep_everything();

    /// Waits until every thread that ran tasks here has left: one that has run the last of them may still be on its way out.
    /// Then, and once nobody posts any more, the executor may go. Not inside a task.
    void await_quiet() noexcept;

    /// Whether the caller is inside a task. Thread safety: any thread.
    [[nodiscard]] bool runs_here() const noexcept {
        return runner_.load(std::memory_order_relaxed) == std::this_thread::get_id();
    }

  private:
    using lock = std::unique_lock<brief_mutex>;

    void begin(lock held);
    void run(lock held, std::size_t at_most);

    brief_mutex mutex_;
    std::vector<core::task> queue_;
    std::vector<core::task> batch_;  ///< what was queued, for the one who runs it
    bool running_ = false;
    bool handed_over_ = false;
    bool passes_on_ = true;
    std::atomic<std::thread::id> runner_{};
    std::function<void()> hand_over_;
};

}  // namespace dibs::detail
