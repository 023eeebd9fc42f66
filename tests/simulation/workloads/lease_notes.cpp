// SPDX-License-Identifier: Apache-2.0
#include "simulation/workloads/lease_notes.hpp"

namespace dibs::simulation {

void lease_notes::asked(const std::string& key, const recipes::mutex_terms& terms) {
    const call made{by_.history().new_id(), terms.lease.ttl};
    calls_[key] = made;
    auto begun = call_line(by_, "acquire", "inv", made.number, key);
    begun.time("ttl_ns", made.ttl);
    if (terms.wait > core::nanoseconds::zero()) {
        begun.flag("waits", true);
    }
}

void lease_notes::told(const std::string& key, const recipes::mutex_outcome& outcome) {
    if (outcome.lease) {
        ++taken_;
    }
    const auto ended = calls_.extract(key);
    if (!by_.alive() || ended.empty()) {
        return;
    }
    const auto& which = ended.mapped();
    if (outcome.lease) {
        note_granted(by_, "acquire", which.number, which.ttl, *outcome.lease);
    } else {
        call_line(
            by_, "acquire", outcome.error ? phase_of(outcome.error) : "fail", which.number, key)
            .text("error", outcome.error ? outcome.error.message() : "held");
    }
}

recipes::mutex::release_completion lease_notes::gives_back(const core::lease_state& lease) {
    --taken_;
    if (!by_.alive()) {
        return [](recipes::release_reply) {};
    }
    return [&by = by_, key = lease.key(), call = note_release(by_, lease)](
               recipes::release_reply told) {
        if (by.alive()) {
            note_released(by, call, key, told);
        }
    };
}

}  // namespace dibs::simulation
