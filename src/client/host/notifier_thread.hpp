// SPDX-License-Identifier: Apache-2.0
#pragma once
// The thread on which users learn of a loss. Started when there is something to tell.

#include "core/environment.hpp"

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

namespace dibs::detail {

class notifier_thread final : public core::notifier {
  public:
    notifier_thread();
    ~notifier_thread() override;

    void notify(core::task work) override;

    /// Runs what is queued, then ends. On the notifier's own thread (a callback that destroys the
    /// client) the rest runs after the callback has returned.
    void stop() noexcept;

  private:
    /// Outlives this object while the thread runs.
    struct mailbox {
        std::mutex mutex;
        std::condition_variable filled;
        std::deque<core::task> queue;
        bool stopping = false;
    };
    static void loop(const std::shared_ptr<mailbox>& box);

    std::shared_ptr<mailbox> box_;
    std::thread thread_;
};

}  // namespace dibs::detail
