// SPDX-License-Identifier: Apache-2.0
#pragma once
// A machine: the clocks that those who live on it see. Both run at the machine's rate; the calendar
// may be stepped, the clock that counts suspend never is.

#include "core/time.hpp"
#include "simulation/world/world.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace dibs::simulation {

class host {
  public:
    host(const world& in, std::string name, core::nanoseconds up_for, core::microseconds since_1970)
        : world_(in),
          name_(std::move(name)),
          local_{up_for},
          wall_{std::chrono::duration_cast<core::nanoseconds>(since_1970)} {}

    [[nodiscard]] const std::string& name() const noexcept { return name_; }

    /// CLOCK_BOOTTIME.
    [[nodiscard]] core::instant now() const noexcept { return core::instant{local_ + passed()}; }
    [[nodiscard]] core::wall_instant wall() const noexcept {
        return core::wall_instant{std::chrono::floor<core::microseconds>(wall_ + passed())};
    }

    /// The first moment of true time at which `now()` is `due` or later; earlier when that is hours
    /// away.
    [[nodiscard]] sim_time when(core::instant due) const noexcept;

    /// Parts per million faster than true time.
    void set_rate(std::int64_t ppm);
    [[nodiscard]] std::int64_t rate() const noexcept { return ppm_; }
    void step_wall(core::nanoseconds by);
    /// The machine sleeps: nobody on it runs, this clock goes on, CLOCK_MONOTONIC does not.
    void sleep(core::nanoseconds length);
    /// How much CLOCK_MONOTONIC is behind.
    [[nodiscard]] core::nanoseconds asleep() const noexcept { return asleep_; }
    /// The machine starts anew; the calendar goes on.
    void reboot(core::nanoseconds up_for);

    /// Called after a clock has changed; `before` of them just before.
    struct watcher {
        std::function<void()> before;
        std::function<void()> after;
    };
    void on_change(watcher told) { watchers_.push_back(std::move(told)); }

  private:
    [[nodiscard]] core::nanoseconds passed() const noexcept {
        const auto since = world_.now() - anchored_;
        return since + core::nanoseconds{since.count() * ppm_ / 1'000'000};
    }
    template <typename Change>
    void change(Change apply);

    const world& world_;
    const std::string name_;
    sim_time anchored_{};
    core::nanoseconds local_;
    core::nanoseconds wall_;
    core::nanoseconds asleep_{};
    sim_time asleep_until_{};
    std::int64_t ppm_ = 0;
    std::vector<watcher> watchers_;
};

}  // namespace dibs::simulation
