// SPDX-License-Identifier: Apache-2.0
#pragma once
// Durations as people write and read them.

#include "core/duration.hpp"

namespace dibs::cli {

using core::parse_duration;
using core::show_duration;
using core::write_duration;

}  // namespace dibs::cli
