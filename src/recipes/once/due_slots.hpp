// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which slots a timer that fires now is to run: that of now, and those that nobody ran while no timer fired.
//
// Missed are the slots after the newest one that is known to have been started; of a job of which nothing is known, none
// is. To be run again are those that were started and are not over: their host is gone, or they failed and may be retried.

#include "recipes/once/schedule.hpp"
#include "recipes/once/slot_record.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dibs::recipes {

enum class missed_slots : std::uint8_t {
    none,  ///< the slot of now, if its time has not been missed either
    last,  ///< the slot of now alone, however late
    all,   ///< every one, oldest first
};

/// A planned slot of which something is kept.
struct known_slot {
    std::string name;
    core::wall_instant begin;
    bool over = false;  ///< done, or failed for good
};

/// From what the store keeps of a slot; empty for one that was named by hand, and for notes of skips.
[[nodiscard]] std::optional<known_slot> known_slot_of(const slot_record& kept,
                                                      bool held,
                                                      bool at_most_once);

struct due_terms {
    missed_slots policy = missed_slots::last;
    std::size_t most = 100;     ///< all: how many; the newest ones
    core::microseconds late{};  ///< none: how long after its beginning a slot is not missed yet
};

struct due_slots {
    std::vector<slot> slots;   ///< oldest first
    std::size_t left_out = 0;  ///< that were more than `most`; counted up to a hundred times that
};

/// `now`: the slot of now. `known`: those of the job, in any order; needed for all and none.
[[nodiscard]] due_slots find_due(const schedule& plan,
                                 const slot& now,
                                 core::wall_instant clock,
                                 const std::vector<known_slot>& known,
                                 const due_terms& terms);

}  // namespace dibs::recipes
