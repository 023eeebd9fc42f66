// SPDX-License-Identifier: Apache-2.0
#pragma once
// Armed timers in the order in which they are due; those due together fire in the order of their
// arming.

#include "core/environment.hpp"

#include <map>
#include <optional>
#include <unordered_map>

namespace dibs::testing {

class timer_queue {
  public:
    timer_queue() = default;
    timer_queue(const timer_queue&) = delete;
    timer_queue& operator=(const timer_queue&) = delete;

    ~timer_queue() {
        for (auto& [due, alarm] : by_due_) {
            alarm->mark_disarmed();
        }
    }

    void arm(core::time_source& source, core::timer& alarm, core::instant due) {
        disarm(alarm);
        place_[&alarm] = by_due_.emplace(due, &alarm);
        alarm.mark_armed(source, due);
    }

    void disarm(core::timer& alarm) noexcept {
        const auto found = place_.find(&alarm);
        if (found == place_.end()) {
            return;
        }
        by_due_.erase(found->second);
        place_.erase(found);
        alarm.mark_disarmed();
    }

    [[nodiscard]] std::optional<core::instant> next_due() const {
        return by_due_.empty() ? std::nullopt : std::optional{by_due_.begin()->first};
    }

    [[nodiscard]] std::size_t armed() const noexcept { return by_due_.size(); }

    /// Fires the first timer that is due at `now`. False: none is.
    bool fire_one(core::instant now) {
        if (by_due_.empty() || by_due_.begin()->first > now) {
            return false;
        }
        core::timer& alarm = *by_due_.begin()->second;
        disarm(alarm);
        alarm.fire();
        return true;
    }

  private:
    using queue = std::multimap<core::instant, core::timer*>;
    queue by_due_;
    std::unordered_map<core::timer*, queue::iterator> place_;
};

}  // namespace dibs::testing
