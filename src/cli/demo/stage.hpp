// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where a demo is played: in a process of its own, with a folder that is gone afterwards however
// the demo ends: by itself, by Ctrl-C, or because nobody reads on.

#include <functional>
#include <string>

namespace dibs::cli {

/// Calls `play` with the folder in a process of its own, and returns there, too: what the caller
/// does with the status, it does in both. Requires: one thread.
/// Errors: std::system_error; and whatever `play` throws, in its process.
[[nodiscard]] int on_stage(const std::function<int(const std::string& folder)>& play);

}  // namespace dibs::cli
