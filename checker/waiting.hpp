// SPDX-License-Identifier: Apache-2.0
#pragma once
// Who waited for what and when, when faults were at work, and a stopwatch that runs while somebody
// ought to be getting on.

#include "checker/history.hpp"

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

namespace dibs_checker {

/// One call from its beginning to its end, its process's death, or the end of the history.
struct open_call {
    position inv = nowhere;
    position end = nowhere;  ///< nowhere: none of its own
    std::int64_t from = 0;
    std::int64_t until = 0;
};

/// When each process was killed.
[[nodiscard]] std::unordered_map<text_id, std::int64_t> deaths_in(const history& of);

/// The acquires that stay in line, by key.
[[nodiscard]] std::map<text_id, std::vector<open_call>> waiters_in(const history& of);

/// A step in how many faults are at work. `heal` ends all of them; a fault of an instant begins and
/// ends at once.
struct fault_change {
    std::int64_t sim;
    int by;
};
[[nodiscard]] std::vector<fault_change> fault_changes_in(const history& of);

/// Something that starts, stops or resets a stopwatch.
struct moment {
    enum class kind : std::uint8_t {
        faults,     ///< `by` faults more at work
        waiters,    ///< `by` waiters more
        taken,      ///< `by` grants more
        progressed  ///< somebody got on
    };
    std::int64_t sim = 0;
    kind what = kind::progressed;
    int by = 0;
    position event = nowhere;  ///< that tells it
    bool told = false;         ///< `taken`: ended by a release, of which waiters are notified
};

/// A stretch in which somebody waited, nothing stood in the way, and nothing happened.
struct stretch {
    std::int64_t from = 0;
    std::int64_t until = 0;
    position since = nowhere;  ///< the event that began it
    position then = nowhere;   ///< the one that ended it; nowhere: the end of the history
    bool told = false;         ///< it began with a release, with waiters in line
};

/// Cuts time into stretches. Sorts the moments. Every waiter that comes has to go, at the end of the
/// history at the latest.
[[nodiscard]] std::vector<stretch> stretches_in(std::vector<moment>& moments);

}  // namespace dibs_checker
