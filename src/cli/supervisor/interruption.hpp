// SPDX-License-Identifier: Apache-2.0
#pragma once
// Signals while there is no child yet: while the store is opened and the key waited for.

#include "cli/supervisor/signals.hpp"

#include <atomic>
#include <functional>
#include <stop_token>
#include <thread>

namespace dibs::cli {

/// Listens on a thread of its own. A signal that would end an ordinary process asks the wait to
/// stop; when that does not come about in time (a call that cannot be interrupted), the process
/// ends: nothing can be held by then but what the store gives back on its own.
class interruption {
  public:
    /// `give_up(signal)` must not return.
    interruption(signal_desk& desk, std::function<void(int)> give_up);
    ~interruption();
    interruption(const interruption&) = delete;
    interruption& operator=(const interruption&) = delete;

    [[nodiscard]] std::stop_token stop() const noexcept { return wish_.get_token(); }

    /// Ends listening; from then on the desk is the caller's. The signal that came, or 0.
    int finish() noexcept;

  private:
    void listen() noexcept;

    signal_desk& desk_;
    std::function<void(int)> give_up_;
    std::stop_source wish_;
    std::atomic<int> signal_{0};
    int wake_ = -1;
    std::thread thread_;
};

}  // namespace dibs::cli
