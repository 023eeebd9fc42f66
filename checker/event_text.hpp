// SPDX-License-Identifier: Apache-2.0
#pragma once
// An event as one line for people.

#include "checker/history.hpp"

#include <string>

namespace dibs_checker {

/// `acquire ok`
[[nodiscard]] std::string event_name(const event& of);
/// `proc="A" key="k" fence=10 ttl=2 s`: what the event has besides its time and name.
[[nodiscard]] std::string event_fields(const history& all, const event& of);

}  // namespace dibs_checker
