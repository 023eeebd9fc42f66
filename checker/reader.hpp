// SPDX-License-Identifier: Apache-2.0
#pragma once
// From JSON lines to a history. Strict: what cannot be, or is not understood, is an error with its
// line, since a check that looks past it would call a broken run clean.

#include "checker/builder.hpp"
#include "checker/history.hpp"

#include <istream>

namespace dibs_checker {

/// Errors: bad_history.
[[nodiscard]] history read_history(std::istream& from);

}  // namespace dibs_checker
