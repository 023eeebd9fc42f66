// SPDX-License-Identifier: Apache-2.0
#include "cli/run/running_report.hpp"

#include "cli/options/option_table.hpp"
#include "cli/output/redact.hpp"
#include "cli/output/speech.hpp"

#include <chrono>
#include <exception>
#include <utility>

namespace dibs::cli {

running_report::running_report(std::string path, std::string for_key, const store_choice& on_store)
    : path_(std::move(path)) {
    key = std::move(for_key);
    store = redact_url(on_store.url);
    started = std::chrono::system_clock::now();
}

void running_report::write(int exit_status) noexcept {
    if (path_.empty()) {
        return;
    }
    try {
        status = exit_status;
        ended = std::chrono::system_clock::now();
        if (!write_report(path_, *this)) {
            say("cannot write " + path_);
        }
    } catch (const std::exception& fault) {
        say(fault.what());
    }
}

void claim_report_path(const std::string& path) {
    if (path.empty()) {
        return;
    }
    if (const auto fault = fault_of_report_path(path); !fault.empty()) {
        throw usage_error("--status-file or --status-fd: " + as_given(path) + ": " + fault);
    }
    keep_from_child(path);
}

void report_refusal(const std::string& path, const std::string& key, const failure& fault) {
    if (path.empty()) {
        return;
    }
    status_report report;
    report.outcome = "invalid";
    report.status = fault.status();
    report.key = key;
    report.started = std::chrono::system_clock::now();
    report.ended = report.started;
    report.message = fault.what();
    (void)write_report(path, report);
}

}  // namespace dibs::cli
