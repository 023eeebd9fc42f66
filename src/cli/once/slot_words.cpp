// SPDX-License-Identifier: Apache-2.0
#include "cli/once/slot_words.hpp"

#include "cli/output/json.hpp"
#include "cli/output/speech.hpp"
#include "core/key.hpp"

#include <chrono>

namespace dibs::cli {

using detail::slot_verdict;
using std::chrono::milliseconds;

std::string instant_text(std::int64_t since_1970_ms) {
    return show_instant(std::chrono::system_clock::time_point{milliseconds{since_1970_ms}});
}

std::string who_ran(const recipes::slot_record& record) {
    return core::printable(record.host) + " (pid " + std::to_string(record.pid) + ", user " +
           core::printable(record.user) + ", attempt " + std::to_string(record.attempt) +
           ", started " + instant_text(record.started_ms) + ")";
}

std::string describe_slot(const std::string& key,
                          slot_verdict verdict,
                          const std::optional<recipes::slot_record>& record) {
    auto text = quoted_key(key);
    switch (verdict) {
        case slot_verdict::done:
            return text + " is done" + (record ? ", by " + who_ran(*record) : "");
        case slot_verdict::failed:
            if (record && record->state == recipes::slot_state::started) {
                return text + " was started at most once and never ended, on " + who_ran(*record);
            }
            if (record && record->state == recipes::slot_state::interrupted) {
                return text + " was started at most once and interrupted, on " + who_ran(*record);
            }
            return text +
                   (record && record->lost ? " failed for good: its lease was lost,"
                                           : " failed for good") +
                   (record ? " with status " + std::to_string(record->status.value_or(1)) + " on " +
                                 who_ran(*record)
                           : "");
        case slot_verdict::waiting:
            return text + " failed and may be tried again" +
                   (record ? " from " + instant_text(record->next_at_ms) + "; last on " +
                                 who_ran(*record)
                           : "");
        case slot_verdict::running:
            return text + " is being run" + (record ? " on " + who_ran(*record) : "");
        case slot_verdict::overlaps:
            return text + " is not run while another slot of its job is";
        case slot_verdict::blocked:
            return text + " is on hold";
        case slot_verdict::forgotten:
            return text +
                   " lies so far back that its outcome may have been forgotten, and is not run; is "
                   "the clock of this host right?";
        case slot_verdict::granted:
        case slot_verdict::trouble:
            break;
    }
    return text;
}

}  // namespace dibs::cli
