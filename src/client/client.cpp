// SPDX-License-Identifier: Apache-2.0
#include "client/attempt.hpp"
#include "client/client_core.hpp"
#include "client/complaint.hpp"
#include "client/leases/adoption.hpp"
#include "client/open_client.hpp"
#include "store/open.hpp"

#include <dibs/client.hpp>

#include <utility>

namespace dibs {

namespace {

[[noreturn]] void fail(std::error_code error, const std::string& message) {
    throw dibs::error(error, message);
}

}  // namespace

namespace detail {

std::optional<client> open_client(std::string_view url,
                                  client_options options,
                                  std::error_code& error,
                                  std::string& message) noexcept {
    error.clear();
    try {
        if (auto core = client_core::open(url, std::move(options), error, message)) {
            return lease_access::make(std::move(core));
        }
    } catch (const std::system_error& fault) {
        error = fault.code();
        message = "store " + store::shown_url(url) + ": " + fault.what();
    }
    return std::nullopt;
}

client lease_access::make(std::shared_ptr<client_core> core) {
    client made;
    made.core_ = std::move(core);
    return made;
}

}  // namespace detail

client::client() noexcept = default;

client::client(std::string_view store_url, client_options options) {
    std::error_code error;
    std::string message;
    auto opened = detail::open_client(store_url, std::move(options), error, message);
    if (!opened) {
        fail(error, message);
    }
    core_ = std::move(opened->core_);
}

client::client(std::string_view store_url,
               client_options options,
               std::error_code& error) noexcept {
    std::string message;
    if (auto opened = detail::open_client(store_url, std::move(options), error, message)) {
        core_ = std::move(opened->core_);
    }
}

client::client(client&& other) noexcept = default;

client& client::operator=(client&& other) noexcept {
    if (this != &other) {
        const auto before = std::exchange(core_, std::exchange(other.core_, nullptr));
        if (before) {
            before->close();
        }
    }
    return *this;
}

client::~client() {
    if (core_) {
        core_->close();
    }
}

std::optional<lease> client::acquire(std::string_view key,
                                     acquire_options options,
                                     std::stop_token stop,
                                     std::error_code& error) noexcept {
    auto told = detail::acquire_with_reason(*this, key, options, std::move(stop));
    error = told.error;
    return std::move(told.granted);
}

std::optional<lease> client::acquire(std::string_view key,
                                     acquire_options options,
                                     std::stop_token stop) {
    auto told = detail::acquire_with_reason(*this, key, options, std::move(stop));
    if (told.error) {
        fail(told.error, told.message);
    }
    return std::move(told.granted);
}

std::optional<lease_set> client::acquire_all(const std::vector<std::string>& keys,
                                             acquire_options options,
                                             std::stop_token stop,
                                             std::error_code& error) noexcept {
    auto told = detail::acquire_all_with_reason(*this, keys, options, std::move(stop));
    error = told.why.error;
    return std::move(told.granted);
}

std::optional<lease_set> client::acquire_all(const std::vector<std::string>& keys,
                                             acquire_options options,
                                             std::stop_token stop) {
    auto told = detail::acquire_all_with_reason(*this, keys, options, std::move(stop));
    if (told.why.error) {
        fail(told.why.error, told.why.message);
    }
    return std::move(told.granted);
}

std::optional<lease> client::try_acquire(std::string_view key,
                                         acquire_options options,
                                         std::error_code& error) noexcept {
    options.wait = std::chrono::milliseconds::zero();
    return acquire(key, options, {}, error);
}

std::optional<lease> client::try_acquire(std::string_view key, acquire_options options) {
    options.wait = std::chrono::milliseconds::zero();
    return acquire(key, options, std::stop_token{});
}

namespace {

lease adopted(const std::shared_ptr<detail::client_core>& core,
              std::string_view text,
              const acquire_options& options,
              std::error_code& error,
              std::string& message) {
    if (!core) {
        error = errc::closed;
        return {};
    }
    const auto asked = detail::checked_adoption(*core, text, options, error, message);
    if (!asked) {
        return {};
    }
    detail::adoption_outcome ended;
    core->run([&](core::task done) {
        detail::adopt(core,
                      *asked,
                      [&ended, done = std::move(done)](detail::adoption_outcome&& told) mutable {
                          ended = std::move(told);
                          done();
                      });
    });
    if (ended.lease) {
        return detail::lease_access::make(core, std::move(ended.lease));
    }
    error = ended.error;
    message = detail::complaint(asked->text.key, core->store().location(), ended.detail);
    return {};
}

}  // namespace

lease client::adopt(std::string_view handed_over,
                    acquire_options options,
                    std::error_code& error) noexcept {
    error.clear();
    std::string message;
    return adopted(core_, handed_over, options, error, message);
}

lease client::adopt(std::string_view handed_over, acquire_options options) {
    std::error_code error;
    std::string message;
    auto taken = adopted(core_, handed_over, options, error, message);
    if (error) {
        fail(error, message);
    }
    return taken;
}

store_info client::store() const {
    store_info told;
    if (core_) {
        const auto& caps = core_->store().caps();
        told.name = caps.name;
        told.location = core_->store().location();
        told.scope = caps.scope;
        told.ttl_min = std::chrono::ceil<std::chrono::milliseconds>(caps.ttl_min);
        told.ttl_max = std::chrono::floor<std::chrono::milliseconds>(caps.ttl_max);
        told.notices_death = caps.notices_death;
        told.wakes_waiters = caps.wakes;
        told.fence_source = caps.fence_source;
    }
    return told;
}

statistics client::stats() const noexcept {
    return core_ ? core_->stats() : statistics{};
}

}  // namespace dibs
