// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where a handle comes from: an operand, stdin, a file, or the environment. It is a secret, and
// every process of a host can read the command lines of the others.

#include "cli/options/option_table.hpp"

#include <string>

namespace dibs::cli {

inline constexpr option handle_file_option{
    "handle-file",
    0,
    "FILE",
    "read the handle there; the output of dibs acquire, --json or not"};

/// HANDLE, `-` for stdin, --handle-file, $DIBS_HANDLE; in this order, and only one of the first
/// two kinds. The text may be what `dibs acquire` or `dibs acquire --json` printed.
/// Errors: usage_error, configuration_error (the file).
[[nodiscard]] std::string handle_given(const command_syntax& syntax, const arguments& found);

}  // namespace dibs::cli
