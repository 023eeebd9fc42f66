// SPDX-License-Identifier: Apache-2.0
#pragma once
// One verb, sent and waited for: for what needs no watchdog and no retries, an operator's steps and
// handles of scripts.

#include "core/batcher.hpp"
#include "core/verbs.hpp"

namespace dibs::detail {

class client_core;

/// Blocks until the store has answered or `patience` is over; the effect of the answer is then
/// unknown. Never throws: a closed client is a refusal.
[[nodiscard]] core::reply ask(client_core& through,
                              core::verb what,
                              core::nanoseconds patience) noexcept;

}  // namespace dibs::detail
