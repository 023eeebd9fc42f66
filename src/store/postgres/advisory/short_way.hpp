// SPDX-License-Identifier: Apache-2.0
#pragma once
// The short ways of a session that keeps locks: statements that do what is simple, and pass over what
// is not (advisory/acquire_one.sql, release_one.sql, step_some.sql). For that session_execute_1
// (session.sql) is asked.

#include "store/postgres/short_way.hpp"
#include "store/postgres/steps.hpp"

#include <cstdint>
#include <vector>

namespace dibs::store::postgres {

/// Whether there is one: for grants of what the session has nothing of, and for what is its own.
[[nodiscard]] bool has_short_way(const core::verb& what, const stand& has) noexcept;

/// Of entries that have one, each of another key and another lock; with the stand of each.
[[nodiscard]] short_step short_session_step(const std::vector<core::entry>& entries,
                                            const std::vector<std::uint32_t>& which,
                                            const std::vector<stand>& stands,
                                            const caller& self);

/// As read_short_step.
[[nodiscard]] bool read_short_session_step(const PGresult& told,
                                           const std::vector<core::entry>& entries,
                                           const std::vector<std::uint32_t>& which,
                                           core::answers& replies,
                                           std::vector<std::uint32_t>& passed_over);

}  // namespace dibs::store::postgres
