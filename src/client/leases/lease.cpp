// SPDX-License-Identifier: Apache-2.0
#include "client/client_core.hpp"
#include "client/complaint.hpp"
#include "client/leases/adoption.hpp"
#include "core/recycling_allocator.hpp"

#include <dibs/lease.hpp>

#include <utility>

namespace dibs {

namespace detail {

lease lease_access::make(std::shared_ptr<client_core> core, recipes::lease_ptr state) {
    return lease(
        std::allocate_shared<lease_handle>(core::recycling_allocator<lease_handle>{},
                                           lease_handle{std::move(core), std::move(state)}));
}

const std::shared_ptr<lease_handle>& lease_access::handle(const lease& held) noexcept {
    return held.handle_;
}

std::shared_ptr<lease_handle> lease_access::take(lease& held) noexcept {
    return std::exchange(held.handle_, nullptr);
}

const std::shared_ptr<client_core>& lease_access::core(const client& of) noexcept {
    return of.core_;
}

void lease_access::drop(std::shared_ptr<lease_handle> handle) noexcept {
    if (!handle || handle->state->released()) {
        return;
    }
    auto& core = *handle->core;
    core.post([handle = std::move(handle)] {
        auto& behind = *handle->core;
        if (behind.closed()) {
            return;
        }
        behind.mutex().release(handle->state, [](recipes::release_reply) {});
    });
}

}  // namespace detail

lease::lease(std::shared_ptr<detail::lease_handle> handle) noexcept : handle_(std::move(handle)) {}

lease& lease::operator=(lease&& other) noexcept {
    if (this != &other) {
        detail::lease_access::drop(std::exchange(handle_, std::exchange(other.handle_, nullptr)));
    }
    return *this;
}

void lease::drop() noexcept {
    detail::lease_access::drop(std::move(handle_));
}

const std::string& lease::key() const noexcept {
    static const std::string none;
    return handle_ ? handle_->state->key() : none;
}

bool lease::held() const noexcept {
    return handle_ && handle_->state->held(handle_->core->env().time.now());
}

std::chrono::nanoseconds lease::remaining() const noexcept {
    if (!handle_) {
        return std::chrono::nanoseconds::zero();
    }
    const auto now = handle_->core->env().time.now();
    if (!handle_->state->held(now)) {
        return std::chrono::nanoseconds::zero();
    }
    return std::max(handle_->state->deadline() - now, std::chrono::nanoseconds::zero());
}

std::uint64_t lease::fence(std::error_code& error) const noexcept {
    error.clear();
    if (held()) {
        return handle_->state->fence();
    }
    error = lost_reason();
    if (!error) {
        error = errc::not_held;
    }
    return 0;
}

std::uint64_t lease::fence() const {
    std::error_code error;
    const auto number = fence(error);
    if (error) {
        throw dibs::error(error, detail::complaint(handle_.get(), "the fence was asked for"));
    }
    return number;
}

std::uint64_t lease::last_fence() const noexcept {
    return handle_ ? handle_->state->fence() : 0;
}

std::stop_token lease::lost() const noexcept {
    return handle_ ? handle_->state->lost() : std::stop_token{};
}

std::error_code lease::lost_reason() const noexcept {
    return handle_ ? handle_->state->lost_reason() : make_error_code(errc::not_held);
}

release_outcome lease::release(std::error_code& error) noexcept {
    error.clear();
    const auto handle = handle_;
    if (!handle) {
        return release_outcome::not_held;
    }
    if (handle->core->closed()) {
        return release_outcome::not_held;
    }
    recipes::release_reply told;
    handle->core->run([&handle, &told](core::task done) {
        auto& core = *handle->core;
        if (core.closed()) {
            done();
            return;
        }
        core.mutex().release(handle->state,
                             [&told, done = std::move(done)](recipes::release_reply reply) mutable {
                                 told = std::move(reply);
                                 done();
                             });
    });
    error = told.error;
    return told.released ? release_outcome::released : release_outcome::not_held;
}

release_outcome lease::release() {
    std::error_code error;
    const auto handle = handle_;
    const auto outcome = release(error);
    if (error) {
        throw dibs::error(
            error,
            detail::complaint(handle.get(), "the release failed; it ends by itself at the latest"));
    }
    return outcome;
}

namespace {

void renew_and_wait(const std::shared_ptr<detail::lease_handle>& handle,
                    std::chrono::nanoseconds ttl,
                    std::error_code& error) {
    core::reply told;
    handle->core->run([&](core::task done) {
        auto& core = *handle->core;
        if (core.closed()) {
            told.given = core.refusal();
            done();
            return;
        }
        core.watchdog().renew_now(
            handle->state, ttl, [&told, done = std::move(done)](core::reply reply) mutable {
                told = std::move(reply);
                done();
            });
    });
    if (told.given.took != core::effect::yes) {
        error = told.given.error;
    } else if (told.given.what != core::verdict::renewed) {
        error = handle->state->lost_reason();
        if (!error) {
            error = errc::lease_gone;
        }
    }
}

}  // namespace

void lease::renew(std::chrono::milliseconds ttl, std::error_code& error) noexcept {
    error.clear();
    const auto handle = handle_;
    if (!held()) {
        error = lost_reason() ? lost_reason() : make_error_code(errc::not_held);
        return;
    }
    const auto& caps = handle->core->store().caps();
    if (ttl < caps.ttl_min || ttl > caps.ttl_max) {
        error = errc::invalid_argument;
        return;
    }
    renew_and_wait(handle, ttl, error);
}

void lease::renew(std::chrono::milliseconds ttl) {
    std::error_code error;
    renew(ttl, error);
    if (error) {
        throw dibs::error(error, detail::complaint(handle_.get(), "the renewal failed"));
    }
}

std::string lease::hand_over(std::error_code& error) noexcept {
    auto ended = detail::hand_over_and_wait(*this);
    error = ended.error;
    return std::move(ended.text);
}

std::string lease::hand_over() {
    std::error_code error;
    auto text = hand_over(error);
    if (error) {
        throw dibs::error(error, detail::complaint(handle_.get(), "it cannot be handed over"));
    }
    return text;
}

}  // namespace dibs
