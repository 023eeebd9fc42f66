// SPDX-License-Identifier: Apache-2.0
// client::idempotent.
#include "client/client_core.hpp"
#include "client/complaint.hpp"
#include "client/recipes/idempotent_work.hpp"

#include <dibs/client.hpp>

#include <exception>
#include <optional>
#include <utility>

namespace dibs {

namespace {

using recipes::idempotent_state;

/// What the work gave: an answer, or what it threw.
struct work_end {
    std::optional<std::string> answer;
    std::optional<std::string> failure;  ///< to be kept
    std::exception_ptr thrown;           ///< not to be kept
};

work_end done_by(const detail::idempotent_work& work,
                 const idempotent_call& with,
                 bool at_most_once) {
    work_end told;
    try {
        auto answer = work(with);
        if (answer.size() > idempotent_answer_bytes_max) {
            told.failure = detail::answer_too_long(answer.size());
        } else {
            told.answer = std::move(answer);
        }
    } catch (const kept_failure& fault) {
        told.failure = fault.what();
    } catch (const std::exception& fault) {
        told.thrown = std::current_exception();
        if (at_most_once) {
            told.failure = fault.what();
        }
    } catch (...) {
        told.thrown = std::current_exception();
        if (at_most_once) {
            told.failure = "it threw something that is no std::exception";
        }
    }
    if (told.failure && told.failure->size() > idempotent_answer_bytes_max) {
        told.failure->resize(idempotent_answer_bytes_max);
    }
    return told;
}

}  // namespace

idempotent_result client::do_once(std::string_view key,
                                  std::string_view fingerprint,
                                  const detail::idempotent_work& work,
                                  const idempotent_options& options,
                                  std::stop_token stop) {
    const auto terms = detail::work_terms_of(key, fingerprint, options);
    auto claim = detail::claim_work(*this, terms, std::move(stop));
    if (claim.error) {
        throw dibs::error(claim.error, claim.message);
    }
    idempotent_result told;
    if (claim.verdict == detail::work_verdict::answered) {
        if (claim.found->state == idempotent_state::failed) {
            throw kept_failure(claim.found->answer);
        }
        told.how = idempotent_result::outcome::replayed;
        told.answer = std::move(claim.found->answer);
        return told;
    }
    if (!claim.granted) {
        return told;
    }
    auto& held = *claim.granted;
    const idempotent_call with{
        .fence = held.last_fence(), .attempt = claim.mine.attempt, .lost = held.lost()};
    auto end = done_by(work, with, terms.at_most_once);
    std::error_code error;
    if (!end.answer && !end.failure) {
        (void)detail::abandon_work(*this, held, error);
        std::rethrow_exception(end.thrown);
    }
    auto mine = claim.mine;
    mine.state = end.failure ? idempotent_state::failed : idempotent_state::done;
    mine.answer = end.failure ? *end.failure : *end.answer;
    const auto kept = detail::keep_answer(*this, held, terms, std::move(mine), error);
    if (end.thrown) {
        std::rethrow_exception(end.thrown);
    }
    if (kept != release_outcome::released) {
        if (!error) {
            error = held.lost_reason() ? held.lost_reason() : make_error_code(errc::lease_taken);
        }
        const auto& core = detail::lease_access::core(*this);
        throw dibs::error(
            error,
            detail::complaint(
                key,
                core ? core->store().location() : "none",
                "the work was done, but its answer could not be kept: " + error.message()));
    }
    if (end.failure) {
        throw kept_failure(*end.failure);
    }
    told.how = idempotent_result::outcome::done;
    told.answer = std::move(*end.answer);
    return told;
}

idempotent_result client::do_once(std::string_view key,
                                  std::string_view fingerprint,
                                  const detail::idempotent_work& work,
                                  const idempotent_options& options,
                                  std::stop_token stop,
                                  std::error_code& error) {
    error.clear();
    // Of `dibs::error`, only what is ours becomes a code: what the work throws comes through as it is.
    bool thrown_by_work = false;
    const detail::idempotent_work guarded = [&](const idempotent_call& with) {
        try {
            return work(with);
        } catch (const kept_failure&) {
            throw;
        } catch (...) {
            thrown_by_work = true;
            throw;
        }
    };
    try {
        return do_once(key, fingerprint, guarded, options, std::move(stop));
    } catch (const dibs::error& fault) {
        if (thrown_by_work) {
            throw;
        }
        error = fault.code();
        return {};
    }
}

}  // namespace dibs
