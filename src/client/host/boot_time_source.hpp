// SPDX-License-Identifier: Apache-2.0
#pragma once
// The clock and the alarm of the real client: CLOCK_BOOTTIME, which counts suspend, and a timing
// wheel behind one timerfd.

#include "client/host/serial_executor.hpp"
#include "core/environment.hpp"
#include "core/timing_wheel.hpp"
#include "store/file_descriptor.hpp"

#include <atomic>
#include <thread>

namespace dibs::detail {

[[nodiscard]] core::instant boot_time_now() noexcept;

class boot_time_source final : public core::time_source {
  public:
    /// Throws std::system_error when the kernel gives no timer.
    boot_time_source();
    ~boot_time_source() override;

    /// Starts the thread that runs due timers on `on`, and what `on` passes on.
    void start(serial_executor& on);

    /// Ends the thread. Timers do not fire any more. Not to be called on that thread.
    void stop() noexcept;

    /// Wakes the thread for serial_executor::run_handed_over.
    void wake() noexcept;

    [[nodiscard]] core::instant now() const noexcept override { return boot_time_now(); }
    void arm(core::timer& alarm, core::instant due) override;
    void disarm(core::timer& alarm) noexcept override;

  private:
    void loop(serial_executor& on);
    void fire_due();
    void program(core::instant due) noexcept;

    core::timing_wheel wheel_;
    core::instant programmed_ = core::instant::max();
    store::file_descriptor timer_;
    store::file_descriptor bell_;
    std::atomic<bool> stopping_{false};
    std::thread thread_;
};

}  // namespace dibs::detail
