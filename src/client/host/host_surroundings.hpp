// SPDX-License-Identifier: Apache-2.0
#pragma once
// The surroundings of a client in a real process.

#include "client/host/boot_time_source.hpp"
#include "client/host/kernel_entropy.hpp"
#include "client/host/notifier_thread.hpp"
#include "client/host/serial_executor.hpp"
#include "client/surroundings.hpp"

namespace dibs::detail {

class host_surroundings final : public surroundings {
  public:
    /// Throws std::system_error when the kernel gives no timer.
    host_surroundings() : executor_([this] { time_.wake(); }) {}

    [[nodiscard]] core::environment env() noexcept override {
        return {executor_, time_, random_, notices_};
    }
    void start() override { time_.start(executor_); }

    /// Waits shortly for the store. Inside a task of the executor it does not wait: that is done
    /// behind the task's back.
    void end(ending& client, std::shared_ptr<const void> keep) noexcept override;

  private:
    void end_and_wait(ending& client) noexcept;

    serial_executor executor_;
    boot_time_source time_;
    kernel_entropy random_;
    notifier_thread notices_;
};

}  // namespace dibs::detail
