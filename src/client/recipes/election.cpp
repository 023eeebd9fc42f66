// SPDX-License-Identifier: Apache-2.0
#include "client/attempt.hpp"
#include "client/complaint.hpp"
#include "client/recipes/observing.hpp"
#include "client/shown_records.hpp"
#include "core/key.hpp"

#include <dibs/client.hpp>
#include <dibs/election.hpp>

#include <utility>
#include <vector>

namespace dibs {

namespace detail {

observing::observing(std::shared_ptr<client_core> core, observer told)
    : core_(std::move(core)), told_(std::move(told)) {}

observation observing::start(std::shared_ptr<client_core> core,
                             std::string key,
                             std::chrono::milliseconds every,
                             observer told) {
    const auto made = std::make_shared<observing>(std::move(core), std::move(told));
    made->core_->post([made, key = std::move(key), every] {
        if (made->core_->closed()) {
            return;
        }
        const std::weak_ptr<observing> weak = made;
        made->recipe_ = recipes::observation::start(made->core_->env(),
                                                    made->core_->store(),
                                                    key,
                                                    every,
                                                    [weak](const recipes::leader_seen& what) {
                                                        if (const auto self = weak.lock()) {
                                                            self->seen(what);
                                                        }
                                                    });
    });
    return observation(made);
}

/// Not on the executor: an observer that is slow must hold up nobody's renewal.
void observing::seen(const recipes::leader_seen& what) {
    leader_change change;
    change.term = what.term;
    if (what.who) {
        std::vector<core::holder_info> one{*what.who};
        change.leader = shown(std::move(one)).front();
    }
    core_->env().notices.notify([self = shared_from_this(), change = std::move(change)] {
        const std::lock_guard lock(self->calling_);
        if (!self->stopped_) {
            self->last_ = change;
            if (self->told_) {
                self->told_(change);
            }
        }
    });
}

void observing::stop() {
    {
        const std::lock_guard lock(calling_);
        stopped_ = true;
    }
    core_->post([self = shared_from_this()] {
        if (self->recipe_) {
            self->recipe_->stop();
            self->recipe_.reset();
        }
    });
}

std::optional<leader_change> observing::current() const {
    const std::lock_guard lock(calling_);
    return last_;
}

}  // namespace detail

observation::observation(std::shared_ptr<detail::observing> what) noexcept
    : what_(std::move(what)) {}

observation::observation(observation&& other) noexcept = default;

observation& observation::operator=(observation&& other) noexcept {
    if (this != &other) {
        if (const auto before = std::exchange(what_, std::exchange(other.what_, nullptr))) {
            before->stop();
        }
    }
    return *this;
}

observation::~observation() {
    if (what_) {
        what_->stop();
    }
}

std::optional<leader_change> observation::current() const {
    return what_ ? what_->current() : std::nullopt;
}

namespace {

acquire_options lease_of(const campaign_options& options) {
    acquire_options wanted;
    wanted.ttl = options.ttl;
    wanted.wait = options.wait;
    wanted.order = options.order;
    wanted.timeout = options.timeout;
    wanted.notice = options.notice;
    wanted.max_hold = options.term_max;
    return wanted;
}

}  // namespace

std::optional<leadership> client::campaign(std::string_view key,
                                           campaign_options options,
                                           std::stop_token stop,
                                           std::error_code& error) noexcept {
    auto told = detail::campaign_with_reason(*this, key, lease_of(options), std::move(stop));
    error = told.error;
    return told.granted ? std::optional<leadership>(std::move(*told.granted)) : std::nullopt;
}

std::optional<leadership> client::campaign(std::string_view key,
                                           campaign_options options,
                                           std::stop_token stop) {
    auto told = detail::campaign_with_reason(*this, key, lease_of(options), std::move(stop));
    if (told.error) {
        throw dibs::error(told.error, told.message);
    }
    return told.granted ? std::optional<leadership>(std::move(*told.granted)) : std::nullopt;
}

observation client::observe(std::string_view key, observer told, observe_options options) {
    const auto refuse = [&](errc why, std::string_view what) {
        throw dibs::error(why,
                          detail::complaint(key, core_ ? core_->store().location() : "none", what));
    };
    if (!core_ || core_->closed()) {
        refuse(errc::closed, "the client is closed");
    }
    if (const auto fault = core::fault_of_key(key); !fault.empty()) {
        refuse(errc::invalid_key, fault);
    }
    if (options.every < std::chrono::milliseconds{10} || options.every > std::chrono::hours{1}) {
        refuse(errc::invalid_argument, "every must be from 10 ms to 1 hour");
    }
    return detail::observing::start(core_, std::string(key), options.every, std::move(told));
}

}  // namespace dibs
