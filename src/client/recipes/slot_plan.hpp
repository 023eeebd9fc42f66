// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which slots of a job are to be run now, from its schedule and from what the store knows of it.

#include "recipes/once/due_slots.hpp"

#include <dibs/client.hpp>

#include <chrono>
#include <string>
#include <system_error>

namespace dibs::detail {

struct slot_plan {
    recipes::schedule when;
    recipes::slot now;  ///< the slot of now
    bool at_most_once = false;
    recipes::due_terms due;
};

[[nodiscard]] core::wall_instant wall_now() noexcept;

inline constexpr std::chrono::milliseconds shortest_keep = std::chrono::hours{1};

/// No time is longer: what is more may not fit into a clock's reading, nor name a day of a calendar.
inline constexpr std::chrono::milliseconds as_good_as_forever = std::chrono::hours{24 * 365 * 100};

/// How long an outcome is kept unless somebody says otherwise. `slot_length`: of the longest slot and the tolerance for early
/// timers; zero for a slot that was named by hand.
[[nodiscard]] std::chrono::milliseconds usual_keep(std::chrono::milliseconds slot_length,
                                                   unsigned retries,
                                                   std::chrono::milliseconds backoff,
                                                   std::chrono::milliseconds ttl) noexcept;

/// How late a slot may be begun that is not to be run when its time was missed.
[[nodiscard]] core::microseconds usual_late(const recipes::schedule& plan) noexcept;

/// Reads what the store keeps of the job, unless that does not matter. With an error it has read nothing.
[[nodiscard]] recipes::due_slots due_slots(client& through,
                                           const std::string& job,
                                           const slot_plan& plan,
                                           std::error_code& error,
                                           std::string& message);

}  // namespace dibs::detail
