// SPDX-License-Identifier: Apache-2.0
// dibs once: a job that runs once per planned time, on whichever host comes first.
#include "cli/commands.hpp"
#include "cli/once/once_missed.hpp"
#include "cli/once/once_options.hpp"
#include "cli/once/once_outlook.hpp"
#include "cli/once/once_session.hpp"
#include "cli/options/option_table.hpp"
#include "cli/output/exit_status.hpp"
#include "cli/output/failure.hpp"
#include "cli/output/speech.hpp"
#include "cli/run/running_report.hpp"
#include "cli/settings/store_access.hpp"

#include <utility>

namespace dibs::cli {

namespace {

int once_checked(const global_options& global, const arguments& found) {
    const auto file = find_settings(real_surroundings());
    auto checked = check_once_options(found, file);
    claim_report_path(checked.run.status_file);
    const auto* flag = checked.run.store ? &*checked.run.store : global.store;
    auto store = settle_store(flag, file, checked.run.quiet);
    if (checked.dry_run || checked.condition) {
        return look_only(checked, store);
    }
    if (checked.due.policy != recipes::missed_slots::last) {
        return run_due_slots(checked, store);
    }
    return run_slot(std::move(checked), std::move(store)).status;
}

}  // namespace

int once_command(const global_options& global, words given) {
    const auto found = parse_arguments(once_syntax(), given);
    if (found.has("help")) {
        deliver(help_text(once_syntax()));
        return exit_status::ok;
    }
    const auto report = report_path(found);
    try {
        return once_checked(global, found);
    } catch (const failure& fault) {
        report_refusal(report, found.operands.empty() ? "" : found.operands.front(), fault);
        if (!found.has("condition")) {
            throw;
        }
        // 1 to 254 would pass for "nothing to do".
        say(fault.what());
        return 255;
    }
}

}  // namespace dibs::cli
