// SPDX-License-Identifier: Apache-2.0
#include "client/checked_options.hpp"
#include "client/complaint.hpp"
#include "client/host/this_process.hpp"
#include "client/recipes/sealing.hpp"
#include "client/recipes/shared_value.hpp"
#include "core/key.hpp"

#include <dibs/cached_value.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace dibs::detail {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// What is too long to be told in the smaller unit is without end, and less than nothing is nothing.
template <typename Smaller>
Smaller told_in(milliseconds span) {
    return span >= std::chrono::duration_cast<milliseconds>(Smaller::max())
               ? Smaller::max()
               : Smaller(std::max(span, milliseconds::zero()));
}

recipes::fetched brought_by(const cached_text::fetcher& fetch,
                            const recipes::fetch_request& request,
                            std::stop_token stop) {
    fetch_context with;
    with.fence = request.fence;
    with.stop = std::move(stop);
    if (request.previous) {
        with.successor = request.previous->successor;
    }
    recipes::fetched told;
    try {
        auto brought = fetch(with);
        told.how = recipes::fetched::ending::good;
        told.value = std::move(brought.value);
        told.life = told_in<microseconds>(brought.life);
        told.successor = std::move(brought.successor);
    } catch (const fetch_failure& fault) {
        told.how = fault.is_refusal()    ? recipes::fetched::ending::refused
                   : fault.is_in_doubt() ? recipes::fetched::ending::unknown
                                         : recipes::fetched::ending::failed;
        if (fault.pause()) {
            told.retry_after = told_in<microseconds>(*fault.pause());
        }
        told.trouble = fault.what();
    }
    return told;
}

std::string fault_of(const cached_options& options, const store::capabilities& caps) {
    if (auto fault = fault_of_ttl(options.ttl(), caps); !fault.empty()) {
        return fault;
    }
    if (!(options.refresh_at() >= 0.05 && options.refresh_at() <= 0.95)) {
        return "refresh_at must be between 0.05 and 0.95";
    }
    if (options.looked_at_every() < milliseconds::zero() ||
        options.looked_at_every() > std::chrono::hours{1}) {
        return "looked_at_every must be between 0 and 1 hour";
    }
    return {};
}

}  // namespace

cached_text::cached_text(client& through,
                         std::string_view key,
                         fetcher fetch,
                         cached_options options) {
    const auto core = lease_access::core(through);
    if (!core) {
        throw dibs::error(errc::closed, "the client is closed");
    }
    const auto refuse = [&](std::error_code error, std::string_view what) {
        throw dibs::error(error, complaint(key, core->store().location(), what));
    };
    if (const auto fault = core::fault_of_key(key); !fault.empty()) {
        refuse(errc::invalid_key, fault);
    }
    if (const auto fault = fault_of(options, core->store().caps()); !fault.empty()) {
        refuse(errc::invalid_argument, fault);
    }
    std::unique_ptr<recipes::sealer> seal;
    if (!options.keys().empty()) {
        std::string fault;
        seal = make_sealer(options.keys(), fault);
        if (!seal) {
            refuse(errc::invalid_argument, fault);
        }
    }
    recipes::cached_terms terms;
    terms.key = key;
    acquire_options of_lease;
    of_lease.ttl = options.ttl();
    terms.acquire = terms_of(of_lease);
    terms.refresh_permille = static_cast<unsigned>(std::lround(options.refresh_at() * 1000));
    terms.looked_at_every = options.looked_at_every();
    terms.rotates = options.rotates();
    terms.retry_after_doubt = options.retries_after_doubt();
    terms.who = this_process({});
    state_ = std::make_unique<shared_value>(
        core,
        std::move(terms),
        std::move(seal),
        [fetch = std::move(fetch)](const recipes::fetch_request& request, std::stop_token stop) {
            return brought_by(fetch, request, std::move(stop));
        });
}

cached_text::~cached_text() = default;

namespace {

recipes::cached_wish wish_of(const get_options& options) {
    recipes::cached_wish wish;
    wish.wait = told_in<core::nanoseconds>(options.wait);
    wish.min_life = told_in<microseconds>(options.min_life);
    return wish;
}

}  // namespace

std::string cached_text::get(get_options options, std::stop_token stop) {
    const auto wish = wish_of(options);
    std::string value;
    if (state_->read_here(wish, value)) {
        return value;
    }
    auto outcome = state_->get(wish, std::move(stop));
    std::string message;
    if (const auto error = state_->error_of(outcome, message)) {
        throw dibs::error(error, message);
    }
    return std::move(outcome.value);
}

std::optional<std::string> cached_text::get(get_options options,
                                            std::stop_token stop,
                                            std::error_code& error) noexcept {
    const auto wish = wish_of(options);
    error.clear();
    if (std::string value; state_->read_here(wish, value)) {
        return value;
    }
    auto outcome = state_->get(wish, std::move(stop));
    std::string message;
    error = state_->error_of(outcome, message);
    if (error) {
        return std::nullopt;
    }
    return std::move(outcome.value);
}

void cached_text::reject(std::string_view value) {
    state_->reject(value);
}

void cached_text::forget(milliseconds wait) {
    std::string message;
    const auto outcome = state_->forget(told_in<core::nanoseconds>(wait), message);
    if (outcome.error) {
        throw dibs::error(outcome.error, message);
    }
}

}  // namespace dibs::detail
