// SPDX-License-Identifier: Apache-2.0
#pragma once
// The short ways of a lone entry and of a batch: statements that do what is simple, and pass over
// what is not (acquire_one.sql, release_one.sql, step_some.sql). For that the whole function is asked.

#include "core/batch.hpp"
#include "core/verbs.hpp"
#include "store/postgres/statements.hpp"
#include "store/postgres/wire.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace dibs::store::postgres {

struct caller;

/// Whether a short way is worth a try. From the second time on that it leads nowhere it is passed by,
/// for longer each time, so that who asks for keys that others hold does not ask twice each time. Once
/// is what a waiter meets that is woken when the key is free.
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
        pass_by_ = misses_ / 2;
    }

  private:
    static constexpr unsigned misses_max = 31;

    unsigned misses_ = 0;
    unsigned pass_by_ = 0;
};

struct short_way_habits {
    short_way_habit lone;
    short_way_habit batches;
};

struct short_step {
    statement which;
    parameters with;
};

/// None: an entry is not simple enough.
[[nodiscard]] std::optional<short_step> short_step_of(const std::vector<core::entry>& entries,
                                                      const std::vector<std::uint32_t>& which,
                                                      const caller& self);

/// Fills in the answers of those that were carried out; `passed_over` gets the others. False: the rows
/// are not those of such a statement.
[[nodiscard]] bool read_short_step(const PGresult& told,
                                   const std::vector<core::entry>& entries,
                                   const std::vector<std::uint32_t>& which,
                                   core::answers& replies,
                                   std::vector<std::uint32_t>& passed_over);

}  // namespace dibs::store::postgres
