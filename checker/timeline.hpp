// SPDX-License-Identifier: Apache-2.0
#pragma once
// One timeline as SVG: some events of a history, and who believed and was granted what meanwhile.

#include "checker/subject.hpp"

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace dibs_checker {

/// `&`, `<`, `>` and quotation marks as entities, for text and attributes alike.
[[nodiscard]] std::string escaped(std::string_view text);

/// `shown`: the events, in order. `marked`: those that are pointed at.
void write_timeline(std::ostream& into,
                    const subject& of,
                    const std::vector<position>& shown,
                    const std::vector<position>& marked);

}  // namespace dibs_checker
