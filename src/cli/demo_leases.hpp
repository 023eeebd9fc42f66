// SPDX-License-Identifier: Apache-2.0
#pragma once
// Demos of what goes wrong with leases, and of what does not. Real processes, on a scratch file;
// the exit status says whether everything came about as told.

#include <string>
#include <string_view>

namespace dibs::cli {

/// Runs one of them, with shorter times if `fast` and its files below a folder; returns the exit
/// status.
using demo_play = int (*)(bool fast, const std::string& below);

/// watchdog: work that is longer than the ttl, without renewal and with it. blind-release: a late
/// holder that deletes the lock of the next one. fencing: a stopped holder whose late write a
/// guarded row refuses. Null for other names, and in a build without SQLite.
[[nodiscard]] demo_play lease_demo(std::string_view name) noexcept;

}  // namespace dibs::cli
