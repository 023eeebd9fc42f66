// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the checks found, for people and for programs.

#include "checker/history.hpp"
#include "checker/verdict.hpp"

#include <ostream>
#include <string_view>
#include <vector>

namespace dibs_checker {

[[nodiscard]] std::string_view title_of(check_id which) noexcept;
[[nodiscard]] std::string_view name_of(outcome what) noexcept;

/// The worst of all: violated, then undecided, then clean.
[[nodiscard]] outcome worst_of(const std::vector<verdict>& found) noexcept;

void write_text(std::ostream& into, const history& of, const std::vector<verdict>& found);
void write_json(std::ostream& into, const history& of, const std::vector<verdict>& found);

}  // namespace dibs_checker
