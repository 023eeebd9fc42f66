// SPDX-License-Identifier: Apache-2.0
#include "client/recipes/slot_run.hpp"

#include "client/checked_options.hpp"
#include "client/client_core.hpp"
#include "client/complaint.hpp"
#include "client/host/host_clock.hpp"
#include "client/host/this_process.hpp"
#include "client/recipes/recipe_call.hpp"
#include "client/shown_records.hpp"
#include "core/key.hpp"
#include "recipes/once/once.hpp"
#include "store/text_file.hpp"

#include <algorithm>
#include <ctime>
#include <memory>
#include <utility>

namespace dibs::detail {

namespace {

using std::chrono::milliseconds;

/// The kernel's name of this boot; empty where it cannot be read.
std::string boot_id() {
    const auto id = store::read_text_file("/proc/sys/kernel/random/boot_id").text;
    return id.substr(0, id.find('\n'));
}

recipes::once_terms terms_of_slot(const slot_terms& asked) {
    recipes::once_terms terms;
    terms.job = asked.job;
    terms.slot = asked.slot;
    terms.acquire = terms_of(asked.acquire);
    terms.retries = asked.retries;
    terms.backoff = asked.backoff;
    terms.at_most_once = asked.at_most_once;
    terms.again = asked.again;
    terms.in_turn = asked.in_turn;
    terms.keep = asked.keep;
    terms.begin_ms = asked.begin_ms;
    terms.boot = boot_id();
    terms.who = this_process(asked.command);
    return terms;
}

slot_verdict shown(recipes::once_verdict verdict) noexcept {
    switch (verdict) {
        case recipes::once_verdict::granted:
            return slot_verdict::granted;
        case recipes::once_verdict::done:
            return slot_verdict::done;
        case recipes::once_verdict::failed:
            return slot_verdict::failed;
        case recipes::once_verdict::waiting:
            return slot_verdict::waiting;
        case recipes::once_verdict::running:
            return slot_verdict::running;
        case recipes::once_verdict::overlaps:
            return slot_verdict::overlaps;
        case recipes::once_verdict::blocked:
            return slot_verdict::blocked;
        case recipes::once_verdict::forgotten:
            return slot_verdict::forgotten;
        case recipes::once_verdict::trouble:
            break;
    }
    return slot_verdict::trouble;
}

std::unique_ptr<recipes::once> recipe_on(client_core& core) {
    return std::make_unique<recipes::once>(core.env(), core.store(), core.mutex(), calendar_ms);
}

}  // namespace

slot_claim claim_slot(client& through, const slot_terms& asked, std::stop_token stop) noexcept {
    const auto core = lease_access::core(through);
    const auto key = recipes::key_of_slot(asked.job, asked.slot);
    slot_claim told;
    const auto fail = [&](std::error_code code, std::string_view what) {
        told.error = code;
        told.message = complaint(key, core ? core->store().location() : "none", what);
    };
    if (!core) {
        fail(errc::closed, "the client is closed");
        return told;
    }
    auto fault = core::fault_of_key(key);
    if (fault.empty()) {
        fault = recipes::fault_of_slot(asked.slot);
    }
    if (!fault.empty()) {
        fail(errc::invalid_key, fault);
        return told;
    }
    if (fault = fault_of_options(asked.acquire, core->store().caps()); !fault.empty()) {
        fail(errc::invalid_argument, fault);
        return told;
    }
    auto outcome = claim_and_wait<recipes::once_outcome>(
        core, terms_of_slot(asked), std::move(stop), recipe_on);
    told.verdict = shown(outcome.verdict);
    if (outcome.error) {
        told.verdict = slot_verdict::trouble;
        fail(outcome.error, outcome.detail.empty() ? outcome.error.message() : outcome.detail);
    } else if (outcome.lease) {
        told.granted = lease_access::make(core, std::move(outcome.lease));
        if (outcome.turn) {
            told.turn = lease_access::make(core, std::move(outcome.turn));
        }
    }
    told.mine = std::move(outcome.mine);
    told.found = std::move(outcome.found);
    told.holders = detail::shown(std::move(outcome.holders));
    told.blocked_key = std::move(outcome.blocked_key);
    told.blocked_reason = std::move(outcome.blocked_reason);
    told.retry_after = outcome.retry_after;
    return told;
}

release_outcome finish_slot(client& through,
                            lease& held,
                            const slot_terms& asked,
                            const recipes::slot_record& mine,
                            run_end how,
                            int status,
                            std::error_code& error) noexcept {
    return end_and_wait(through,
                        held,
                        error,
                        recipe_on,
                        [&](recipes::once& recipe,
                            const recipes::lease_ptr& lease,
                            recipes::mutex::release_completion done) {
                            const auto terms = terms_of_slot(asked);
                            if (how == run_end::interrupted) {
                                recipe.interrupt(lease, terms, mine, status, std::move(done));
                            } else {
                                const bool success = how == run_end::succeeded;
                                recipe.finish(lease, terms, mine, success, status, std::move(done));
                            }
                        });
}

void withdraw_slot(client& through, slot_claim& claim, const slot_terms& asked) noexcept {
    std::error_code ignored;
    (void)end_and_wait(through,
                       *claim.granted,
                       ignored,
                       recipe_on,
                       [&](recipes::once& recipe,
                           const recipes::lease_ptr& lease,
                           recipes::mutex::release_completion done) {
                           recipe.withdraw(
                               lease, terms_of_slot(asked), claim.found, std::move(done));
                       });
    if (claim.turn) {
        (void)claim.turn->release(ignored);
    }
}

void forget_slots(client& through,
                  const slot_terms& asked,
                  const std::function<std::string(std::int64_t)>& name_at) noexcept {
    const auto core = lease_access::core(through);
    if (!core || !asked.begin_ms) {
        return;
    }
    std::unique_ptr<recipes::slot_memory> memory;
    core->run([&](core::task done) {
        if (core->closed()) {
            done();
            return;
        }
        memory = std::make_unique<recipes::slot_memory>(core->env(), core->store());
        memory->forget(asked.job, *asked.begin_ms, asked.keep, name_at, std::move(done));
    });
}

milliseconds back_off_left(const recipes::slot_record& record, milliseconds age) {
    timespec now{};
    ::clock_gettime(CLOCK_BOOTTIME, &now);
    return recipes::back_off_left(
        record, age, boot_id(), std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000);
}

std::chrono::microseconds back_off_after(const slot_terms& asked, unsigned failures) {
    return recipes::backoff_after(asked.backoff, failures);
}

void note_skip(client& through, const slot_terms& asked, milliseconds patience) noexcept {
    const auto core = lease_access::core(through);
    const auto who = this_process(asked.command);
    const auto key = recipes::key_of_skip(asked.job, asked.slot, who.host);
    if (!core || !core::fault_of_key(key).empty()) {
        return;
    }
    recipes::slot_record skip;
    skip.job = asked.job;
    skip.slot = asked.slot;
    skip.state = recipes::slot_state::skipped;
    skip.host = who.host;
    skip.pid = who.pid;
    skip.user = who.user;
    skip.started_ms = calendar_ms();
    acquire_options options;
    options.ttl =
        std::clamp<milliseconds>(std::chrono::seconds{5},
                                 std::chrono::ceil<milliseconds>(core->store().caps().ttl_min),
                                 std::chrono::floor<milliseconds>(core->store().caps().ttl_max));
    options.timeout = patience;
    options.renew = false;
    auto terms = terms_of(options);
    terms.mark = core::result_to_keep{
        .value = recipes::to_text(skip), .fresh = core::microseconds{0}, .keep = asked.keep};
    recipes::mutex_outcome outcome;
    core->run([&](core::task done) {
        if (core->closed()) {
            done();
            return;
        }
        core->mutex().acquire(
            key,
            std::move(terms),
            [&outcome, done = std::move(done)](recipes::mutex_outcome ended) mutable {
                outcome = std::move(ended);
                done();
            });
    });
    if (outcome.lease) {
        const auto brief =
            lease_access::make(core, std::move(outcome.lease));  // given back at once
    }
}

}  // namespace dibs::detail
