// SPDX-License-Identifier: Apache-2.0
#pragma once
// A counter behind lock and fence, for workloads that are about the lock: whoever holds it shows the
// fence, reads, thinks, looks at the handle, writes. Each step is a task of its own, so that a fault
// may strike before it. No increment may be lost, whatever happens.

#include "simulation/workloads/caller.hpp"
#include "simulation/workloads/target.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace dibs::simulation {

class guarded_counter {
  public:
    guarded_counter(scene& on, const std::string& key);

    [[nodiscard]] const std::string& key() const noexcept { return key_; }

    /// Counts once under the lease, if that is held and its fence is good, and gives it back to
    /// `then`. Thinks for up to `think_most`.
    using done = std::function<void(std::unique_ptr<held_lease>)>;
    void increment(client_process& by,
                   std::unique_ptr<held_lease> under,
                   core::nanoseconds think_most,
                   done then);

    /// In the end: writes the count down, and complains when it is wrong.
    void judge();

  private:
    struct turn;
    using turn_ptr = std::shared_ptr<turn>;
    void show_fence(const turn_ptr& mine);
    void read(const turn_ptr& mine);
    void write(const turn_ptr& mine);
    void end(const turn_ptr& mine, std::string_view phase, std::string_view error);

    scene& scene_;
    const std::string key_;
    target value_;
    std::int64_t sure_ = 0;    ///< increments that were told to be done
    std::int64_t unsure_ = 0;  ///< those of which nobody knows
};

}  // namespace dibs::simulation
