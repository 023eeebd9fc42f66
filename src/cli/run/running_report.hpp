// SPDX-License-Identifier: Apache-2.0
#pragma once
// The report of a command that runs another one under a lease, from its beginning to the exit status.

#include "cli/output/failure.hpp"
#include "cli/output/status_report.hpp"
#include "cli/settings/settings.hpp"

#include <string>

namespace dibs::cli {

class running_report : public status_report {
  public:
    /// `path` empty: it is written nowhere.
    running_report(std::string path, std::string for_key, const store_choice& on_store);

    /// Ends it. What goes wrong is said, and changes nothing.
    void write(int exit_status) noexcept;

  private:
    std::string path_;
};

/// Before anything is begun: it can be written there, and by nobody else. Errors: usage_error.
void claim_report_path(const std::string& path);

/// For settings that were refused before there was a session to tell of.
void report_refusal(const std::string& path, const std::string& key, const failure& fault);

}  // namespace dibs::cli
