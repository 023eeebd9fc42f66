// SPDX-License-Identifier: Apache-2.0
#include "simulation/workloads/claims.hpp"

#include <utility>

namespace dibs::simulation {

std::function<std::int64_t()> calendar_of(client_process& by) {
    return [&machine = by.self().machine()] {
        return std::chrono::floor<core::milliseconds>(machine.wall().time_since_epoch()).count();
    };
}

acquire_options claim_options(scene& on) {
    acquire_options options;
    options.ttl = on.drawn.ttl;
    options.wait = on.chance.chance(500)
                       ? core::milliseconds{0}
                       : core::milliseconds{on.chance.between(1, 2 * options.ttl.count())};
    options.timeout = core::milliseconds{on.chance.between(50, 5000)};
    return options;
}

std::uint64_t note_claim(client_process& by, const std::string& key, core::nanoseconds ttl) {
    const auto call = by.history().new_id();
    call_line(by, "acquire", "inv", call, key).time("ttl_ns", ttl);
    return call;
}

void note_no_lease(client_process& by,
                   std::uint64_t call,
                   const std::string& key,
                   std::error_code error) {
    call_line(by, "acquire", error ? "info" : "fail", call, key)
        .text("error", error ? error.message() : "held");
}

void do_job(scene& on,
            client_process& by,
            const core::lease_state& under,
            bool begins,
            core::nanoseconds length,
            job_done then) {
    const auto call = begins ? on.history.new_id() : 0;
    if (begins) {
        call_line(by, "job", "inv", call, under.key()).number("fence", under.fence());
    }
    by.self().post_in(begins ? length : core::nanoseconds{0},
                      [call, then = std::move(then)] { then(call); });
}

void note_job_end(client_process& by,
                  std::uint64_t job_call,
                  const std::string& key,
                  std::string_view phase) {
    if (job_call != 0) {
        call_line(by, "job", phase, job_call, key);
    }
}

std::string_view phase_of_run(const recipes::release_reply& told, bool success) {
    return told.released && success ? "ok" : told.error ? "info" : "fail";
}

}  // namespace dibs::simulation
