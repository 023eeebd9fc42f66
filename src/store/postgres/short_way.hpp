// SPDX-License-Identifier: Apache-2.0
#pragma once
// The short ways of a lone entry: statements that do what is simple, and find nothing to do
// otherwise (acquire_one.sql, release_one.sql). Then the whole function is asked.

#include "core/verbs.hpp"
#include "store/postgres/statements.hpp"
#include "store/postgres/wire.hpp"

#include <algorithm>
#include <optional>

namespace dibs::store::postgres {

struct caller;

/// Whether the short way is worth a try. Each time that it leads nowhere it is passed by for longer,
/// so that who asks for keys that others hold does not ask twice each time.
class short_way_habit {
  public:
    [[nodiscard]] bool try_it() noexcept {
        if (pass_by_ == 0) {
            return true;
        }
        --pass_by_;
        return false;
    }
    void led_there(bool so) noexcept {
        misses_ = so ? 0 : std::min(2 * misses_ + 1, misses_max);
        pass_by_ = misses_;
    }

  private:
    static constexpr unsigned misses_max = 31;

    unsigned misses_ = 0;
    unsigned pass_by_ = 0;
};

struct short_step {
    statement which;
    parameters with;
};

/// None: the entry is not simple enough.
[[nodiscard]] std::optional<short_step> short_step_of(const core::verb& what, const caller& self);

/// What such a step gave. False: the row is not one of its statement.
[[nodiscard]] bool read_short_step(const PGresult& told,
                                   const core::verb& what,
                                   std::optional<core::answer>& given);

}  // namespace dibs::store::postgres
