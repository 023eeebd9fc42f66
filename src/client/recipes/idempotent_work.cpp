// SPDX-License-Identifier: Apache-2.0
#include "client/recipes/idempotent_work.hpp"

#include "client/checked_options.hpp"
#include "client/client_core.hpp"
#include "client/complaint.hpp"
#include "client/host/host_clock.hpp"
#include "client/host/this_process.hpp"
#include "client/recipes/recipe_call.hpp"
#include "client/shown_records.hpp"
#include "core/key.hpp"
#include "core/sha256.hpp"

#include <memory>
#include <utility>

namespace dibs::detail {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr milliseconds shortest_keep = std::chrono::seconds{1};

microseconds in_microseconds(milliseconds span) {
    return span >= std::chrono::duration_cast<milliseconds>(microseconds::max())
               ? microseconds::max()
               : microseconds(span);
}

work_verdict shown(recipes::idempotent_verdict verdict) noexcept {
    switch (verdict) {
        case recipes::idempotent_verdict::granted:
            return work_verdict::granted;
        case recipes::idempotent_verdict::answered:
            return work_verdict::answered;
        case recipes::idempotent_verdict::in_flight:
            return work_verdict::in_flight;
        case recipes::idempotent_verdict::blocked:
            return work_verdict::blocked;
        case recipes::idempotent_verdict::differs:
            return work_verdict::differs;
        case recipes::idempotent_verdict::in_doubt:
            return work_verdict::in_doubt;
        case recipes::idempotent_verdict::trouble:
            break;
    }
    return work_verdict::trouble;
}

}  // namespace

work_terms work_terms_of(std::string_view key,
                         std::string_view fingerprint,
                         const idempotent_options& options) {
    work_terms terms;
    terms.key = key;
    terms.fingerprint = core::sha256_of(fingerprint);
    terms.acquire.ttl = options.ttl;
    terms.acquire.wait = options.wait;
    terms.acquire.timeout = options.timeout;
    terms.keep = options.keep;
    terms.at_most_once = options.at_most_once;
    return terms;
}

std::string answer_too_long(std::size_t bytes) {
    return "the work was done; its answer of " + std::to_string(bytes) +
           " bytes is too long to be kept";
}

std::unique_ptr<recipes::idempotent> recipe_of_work(client_core& core) {
    return std::make_unique<recipes::idempotent>(
        core.env(), core.batcher(), core.mutex(), calendar_ms);
}

recipes::idempotent_terms recipe_terms_of(const work_terms& asked) {
    recipes::idempotent_terms terms;
    terms.key = asked.key;
    terms.fingerprint = asked.fingerprint;
    terms.acquire = terms_of(asked.acquire);
    terms.keep = in_microseconds(asked.keep);
    terms.at_most_once = asked.at_most_once;
    terms.who = this_process(asked.command);
    return terms;
}

std::string fault_of_work(const work_terms& terms, const client& through) {
    const auto& core = lease_access::core(through);
    if (auto fault = fault_of_options(terms.acquire, core->store().caps()); !fault.empty()) {
        return fault;
    }
    if (terms.keep < shortest_keep) {
        return "keep must be at least 1 s";
    }
    return {};
}

work_claim claim_work(client& through, const work_terms& asked, std::stop_token stop) noexcept {
    const auto core = lease_access::core(through);
    work_claim told;
    const auto fail = [&](std::error_code code, std::string_view what) {
        told.error = code;
        told.message = complaint(asked.key, core ? core->store().location() : "none", what);
    };
    if (!core) {
        fail(errc::closed, "the client is closed");
        return told;
    }
    if (auto fault = core::fault_of_key(asked.key); !fault.empty()) {
        fail(errc::invalid_key, fault);
        return told;
    }
    if (auto fault = fault_of_work(asked, through); !fault.empty()) {
        fail(errc::invalid_argument, fault);
        return told;
    }
    auto outcome = claim_and_wait<recipes::idempotent_outcome>(
        core, recipe_terms_of(asked), std::move(stop), recipe_of_work);
    told.verdict = shown(outcome.verdict);
    if (outcome.error) {
        told.verdict = work_verdict::trouble;
        fail(outcome.error, outcome.detail.empty() ? outcome.error.message() : outcome.detail);
    } else if (outcome.lease) {
        told.granted = lease_access::make(core, std::move(outcome.lease));
    } else if (told.verdict == work_verdict::differs) {
        fail(errc::fingerprint_differs,
             "the key was used for something else before: each request needs a key of its own");
    } else if (told.verdict == work_verdict::in_doubt) {
        fail(errc::work_in_doubt,
             "it was begun by " + core::printable(outcome.found->host) + " (pid " +
                 std::to_string(outcome.found->pid) +
                 ") and has not told how it ended; it may be done once only. Find out what became "
                 "of it, and use another key if it must be done again");
    }
    told.mine = std::move(outcome.mine);
    told.found = std::move(outcome.found);
    told.holders = detail::shown(std::move(outcome.holders));
    told.blocked_reason = std::move(outcome.blocked_reason);
    told.retry_after = outcome.retry_after;
    return told;
}

release_outcome keep_answer(client& through,
                            lease& held,
                            const work_terms& asked,
                            recipes::idempotent_record mine,
                            std::error_code& error) noexcept {
    return end_and_wait(through,
                        held,
                        error,
                        recipe_of_work,
                        [&](recipes::idempotent& recipe,
                            const recipes::lease_ptr& lease,
                            recipes::mutex::release_completion done) {
                            recipe.finish(
                                lease, recipe_terms_of(asked), std::move(mine), std::move(done));
                        });
}

release_outcome abandon_work(client& through, lease& held, std::error_code& error) noexcept {
    return end_and_wait(
        through,
        held,
        error,
        recipe_of_work,
        [](recipes::idempotent& recipe,
           const recipes::lease_ptr& lease,
           recipes::mutex::release_completion done) { recipe.abandon(lease, std::move(done)); });
}

}  // namespace dibs::detail
