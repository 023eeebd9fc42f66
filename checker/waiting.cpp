// SPDX-License-Identifier: Apache-2.0
#include "checker/waiting.hpp"

#include <algorithm>

namespace dibs_checker {

std::unordered_map<text_id, std::int64_t> deaths_in(const history& of) {
    std::unordered_map<text_id, std::int64_t> made;
    for (const auto& now : of.events) {
        if (now.what == op::fault && now.ph == phase::at && of.text(now, field::name) == "kill") {
            made.emplace(now[field::proc], now.sim());
        }
    }
    return made;
}

std::map<text_id, std::vector<open_call>> waiters_in(const history& of) {
    const auto deaths = deaths_in(of);
    std::map<text_id, std::vector<open_call>> made;
    for (position at = 0; at < of.events.size(); ++at) {
        const auto& now = of.events[at];
        if (!now.is_inv(op::acquire) || now[field::waits] == 0) {
            continue;
        }
        open_call call{at, now.partner, now.sim(), of.end_ns()};
        if (const auto* end = of.end_of(now)) {
            call.until = end->sim();
        } else if (const auto death = deaths.find(now[field::proc]); death != deaths.end()) {
            call.until = death->second;
        }
        made[now[field::key]].push_back(call);
    }
    return made;
}

std::vector<fault_change> fault_changes_in(const history& of) {
    std::vector<fault_change> made;
    int open = 0;
    std::vector<bool> healed(of.events.size());
    std::vector<position> begun;
    for (position at = 0; at < of.events.size(); ++at) {
        const auto& now = of.events[at];
        if (now.what == op::heal) {
            made.push_back({now.sim(), -open});
            open = 0;
            for (const auto fault : begun) {
                healed[fault] = true;
            }
            begun.clear();
        } else if (now.what == op::fault) {
            if (now.ph == phase::begin) {
                ++open;
                made.push_back({now.sim(), 1});
                begun.push_back(at);
            } else if (now.ph == phase::end) {
                if (!healed[now.partner]) {
                    --open;
                    made.push_back({now.sim(), -1});
                    std::erase(begun, now.partner);
                }
            } else {
                made.push_back({now.sim(), 1});
                made.push_back({now.sim(), -1});
            }
        }
    }
    return made;
}

std::vector<stretch> stretches_in(std::vector<moment>& moments) {
    std::stable_sort(moments.begin(), moments.end(), [](const moment& left, const moment& right) {
        return left.sim < right.sim;
    });
    std::vector<stretch> made;
    int faults = 0;
    int waiters = 0;
    int taken = 0;
    bool running = false;
    stretch current;
    const auto stop = [&](std::int64_t sim, position then) {
        if (running) {
            current.until = sim;
            current.then = then;
            made.push_back(current);
            running = false;
        }
    };
    for (const auto& now : moments) {
        const bool was_running = running;
        switch (now.what) {
            case moment::kind::faults:
                faults += now.by;
                break;
            case moment::kind::waiters:
                waiters += now.by;
                break;
            case moment::kind::taken:
                taken += now.by;
                break;
            case moment::kind::progressed:
                stop(now.sim, now.event);
                break;
        }
        const bool should_run = faults == 0 && waiters > 0 && taken <= 0;
        if (!should_run) {
            stop(now.sim, now.event);
        } else if (!running) {
            running = true;
            const bool freed = !was_running && now.what == moment::kind::taken && now.told;
            current = {now.sim, now.sim, now.event, nowhere, freed};
        }
    }
    return made;
}

}  // namespace dibs_checker
