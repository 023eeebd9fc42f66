// SPDX-License-Identifier: Apache-2.0
#pragma once
// From JSON lines to a history. Strict: what cannot be, or is not understood, is an error with its
// line, since a check that looks past it would call a broken run clean.

#include "checker/history.hpp"

#include <istream>
#include <stdexcept>
#include <string>

namespace dibs_checker {

/// The history cannot be read; `what()` names the line.
class bad_history : public std::runtime_error {
  public:
    bad_history(std::uint32_t line, const std::string& why)
        : std::runtime_error("line " + std::to_string(line) + ": " + why), line_(line) {}
    [[nodiscard]] std::uint32_t line() const noexcept { return line_; }

  private:
    std::uint32_t line_;
};

/// Errors: bad_history.
[[nodiscard]] history read_history(std::istream& from);

/// Joins the ends of calls and faults, and refuses orders of events that cannot be. Part of
/// read_history. Errors: bad_history.
void assemble(history& what);

}  // namespace dibs_checker
