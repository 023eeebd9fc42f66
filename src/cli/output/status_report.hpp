// SPDX-License-Identifier: Apache-2.0
#pragma once
// What became of a `dibs run`, for machines: exit statuses alone cannot tell a held key from a
// child that ended with 75.

#include <dibs/info.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dibs::cli {

struct status_report {
    /// child · not_started · held · wait_over · blocked · lost · max_hold · max_runtime · signal ·
    /// unavailable · invalid; of `dibs once` also done · failed · running · waiting · interrupted ·
    /// forgotten · overlaps · missed
    std::string outcome;
    int status = 0;  ///< the exit status
    std::string key;
    std::string store;  ///< secrets blanked
    std::uint64_t fence = 0;
    std::vector<std::pair<std::string, std::uint64_t>> also;  ///< further keys and their fences
    std::chrono::system_clock::time_point started;
    std::chrono::system_clock::time_point ended;
    std::optional<dibs::holder> holder;  ///< who stood in the way
    std::string message;
};

/// Whether a report could be written there; empty when it can, else why not.
[[nodiscard]] std::string fault_of_report_path(const std::string& path);

/// The child of a run does not inherit the descriptor of a report, unless it is one of the three
/// that everybody has: what it wrote there would come before the report.
void keep_from_child(const std::string& path);

/// Replaces the file in one step, so that a reader sees all of it or the old one; a device, a pipe
/// or a link is kept and written to. False when that failed.
bool write_report(const std::string& path, const status_report& report);

}  // namespace dibs::cli
