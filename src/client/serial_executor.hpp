// SPDX-License-Identifier: Apache-2.0
#pragma once
// The executor of the real client. It has no thread: whoever posts to an idle executor runs what is queued, so a lone
// caller pays no thread hop and a store's worker delivers its answers itself.

#include <functional>
#include <mutex>
#include <vector>

#include "core/environment.hpp"

namespace dibs::detail {

class serial_executor final : public core::executor {
  public:
    /// `hand_over` wakes a thread that calls run_handed_over(): a caller that has run many tasks of others passes the
    /// rest on, so that its own call returns.
    explicit serial_executor(std::function<void()> hand_over) : hand_over_(std::move(hand_over)) {}

    void post(core::task work) override;

    /// Runs what a busy caller has passed on; does nothing when nobody has.
    void run_handed_over();

  private:
    void run(std::size_t at_most);

    std::mutex mutex_;
    std::vector<core::task> queue_;
    bool running_ = false;
    bool handed_over_ = false;
    std::function<void()> hand_over_;
};

}  // namespace dibs::detail
