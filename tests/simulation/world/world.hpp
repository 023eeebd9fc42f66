// SPDX-License-Identifier: Apache-2.0
#pragma once
// The one true time of a run and everything that is going to happen: a queue of events in the order
// of (time, number). Whoever is in the world acts through it alone, so a run is a function of its
// seed.

#include "core/time.hpp"
#include "core/unique_function.hpp"

#include <cstdint>
#include <vector>

namespace dibs::simulation {

/// Since the beginning of the run; no party of the run can see it.
using sim_time = core::nanoseconds;

class world {
  public:
    using event = core::unique_function<void()>;

    [[nodiscard]] sim_time now() const noexcept { return now_; }
    [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }

    /// An event cannot be taken back: it looks, when it comes, whether it is still wanted.
    void at(sim_time when, event what);
    void in(core::nanoseconds delay, event what) { at(now_ + delay, std::move(what)); }

    /// Runs everything up to and including `end`.
    void run_until(sim_time end);

    /// Forgets what is left, so that nothing of it runs and what it holds is let go.
    void clear();

  private:
    struct entry {
        sim_time when;
        std::uint64_t number;
        std::uint32_t slot;
    };
    struct later {
        bool operator()(const entry& one, const entry& other) const noexcept {
            return one.when != other.when ? one.when > other.when : one.number > other.number;
        }
    };

    /// The earliest of all, in its queue; null: nothing is left.
    [[nodiscard]] std::vector<entry>* next() noexcept;

    sim_time now_{};
    std::uint64_t steps_ = 0;
    std::uint64_t numbered_ = 0;
    std::vector<entry> soon_;    ///< a heap: most of what comes next, and so a short one
    std::vector<entry> later_;   ///< a heap: the rest, often no longer wanted when it comes
    std::vector<event> events_;  ///< what the entries' slots hold
    std::vector<std::uint32_t> free_;
};

}  // namespace dibs::simulation
