// SPDX-License-Identifier: Apache-2.0
#pragma once
// A history as a page with a timeline per finding: one lane per process, per key of a store and for
// the faults. The page is complete in itself.

#include "checker/history.hpp"
#include "checker/verdict.hpp"

#include <ostream>
#include <vector>

namespace dibs_checker {

void write_picture(std::ostream& into, const history& of, const std::vector<verdict>& found);

}  // namespace dibs_checker
