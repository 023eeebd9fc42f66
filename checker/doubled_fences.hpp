// SPDX-License-Identifier: Apache-2.0
#pragma once
// Fences that were told to two holders after a fault that lifts C3. A target cannot tell such two
// apart, so of what both did behind one of them an update may be lost.

#include "checker/subject.hpp"

#include <cstdint>
#include <unordered_set>
#include <vector>

namespace dibs_checker {

class doubled_fences {
  public:
    explicit doubled_fences(const subject& of);

    /// The second of two updates of one item that bear the same doubled fence, from which on one of
    /// them may be missing; nowhere when there is none.
    /// @param updates beginnings of updates of one set or counter, in order
    [[nodiscard]] position shared_by(const std::vector<position>& updates) const;

  private:
    const history& all_;
    std::unordered_set<std::int64_t> numbers_;
};

}  // namespace dibs_checker
