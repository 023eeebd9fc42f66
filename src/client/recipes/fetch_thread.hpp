// SPDX-License-Identifier: Apache-2.0
#pragma once
// The thread on which a shared value is fetched: it may block for long. Made with the first fetch. One fetch at a time.

#include "core/unique_function.hpp"

#include <condition_variable>
#include <mutex>
#include <thread>

namespace dibs::detail {

class fetch_thread {
  public:
    fetch_thread() = default;
    ~fetch_thread();
    fetch_thread(const fetch_thread&) = delete;
    fetch_thread& operator=(const fetch_thread&) = delete;

    /// Runs `work` there. Requires: what was begun before has ended. After stop() it does nothing.
    void begin(core::unique_function<void()> work);

    /// Waits for the work under way.
    void stop() noexcept;

  private:
    void loop();

    std::mutex mutex_;
    std::condition_variable bell_;
    core::unique_function<void()> work_;
    bool stopping_ = false;
    std::thread thread_;
};

}  // namespace dibs::detail
