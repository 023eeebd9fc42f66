// SPDX-License-Identifier: Apache-2.0
#pragma once
// From when to when each process believed to hold a key, in true time: from the answer to its
// acquire until its own deadline, or until it gave the lease up or was told that it is lost.

#include "checker/clock_map.hpp"
#include "checker/history.hpp"

#include <vector>

namespace dibs_checker {

struct belief {
    text_id proc = 0;
    text_id key = 0;
    std::int64_t fence = 0;
    std::int64_t weight = 1;
    std::int64_t capacity = 1;
    std::int64_t from = 0;
    std::int64_t until = 0;
    std::int64_t deadline = 0;    ///< the last that it was told, whatever ended it
    position begin = nowhere;     ///< the answer that it began with
    position extended = nowhere;  ///< the answer that its deadline stems from
    position end = nowhere;       ///< what ended it; nowhere: its deadline, or the history's end
};

[[nodiscard]] std::vector<belief> beliefs_in(const history& of, const clock_map& clocks);

}  // namespace dibs_checker
