// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the command says to people: one line at a time, on stderr, since stdout belongs to the
// child.

#include <dibs/info.hpp>

#include <string>
#include <string_view>

namespace dibs::cli {

/// Writes `dibs: TEXT` as one line in one write, so that lines of several processes do not mix.
void say(std::string_view text) noexcept;

/// Writes to stdout, all of it: a listing that nobody got is no success. Errors: failure.
void deliver(std::string_view text);

/// `host (pid 17, user app), since 03:00:00 (12 s), 18 s left, fence 1764…: ./report.sh`
[[nodiscard]] std::string describe_holder(const dibs::holder& who);

/// A key in quotes, fit for a terminal.
[[nodiscard]] std::string quoted_key(std::string_view key);

}  // namespace dibs::cli
