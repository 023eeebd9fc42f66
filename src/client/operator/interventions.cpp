// SPDX-License-Identifier: Apache-2.0
// What an operator may do to a key that others hold.
#include "client/ask.hpp"
#include "client/client_core.hpp"
#include "client/complaint.hpp"
#include "core/key.hpp"

#include <dibs/client.hpp>

#include <chrono>
#include <utility>

namespace dibs {

namespace {

constexpr auto patience = std::chrono::seconds{4};

struct verdict_or_error {
    core::verdict what = core::verdict::failed;
    std::error_code error;
    std::string message;
};

verdict_or_error carry_out(const std::shared_ptr<detail::client_core>& core,
                           std::string_view key,
                           core::verb what,
                           std::string_view fault) {
    verdict_or_error told;
    const auto fail = [&](std::error_code error, std::string_view why) {
        told.error = error;
        told.message = detail::complaint(key, core ? core->store().location() : "none", why);
    };
    if (!core) {
        fail(errc::closed, "the client is closed");
    } else if (const auto wrong = core::fault_of_key(key); !wrong.empty()) {
        fail(errc::invalid_key, wrong);
    } else if (!fault.empty()) {
        fail(errc::invalid_argument, fault);
    } else {
        const auto reply = detail::ask(*core, std::move(what), patience);
        told.what = reply.given.what;
        if (reply.given.took != core::effect::yes) {
            const auto& given = reply.given;
            fail(given.error, given.detail.empty() ? given.error.message() : given.detail);
        }
    }
    return told;
}

verdict_or_error revoke_through(const std::shared_ptr<detail::client_core>& core,
                                std::string_view key,
                                std::uint64_t fence) {
    return carry_out(core,
                     key,
                     core::revoke{.key = std::string(key), .fence = fence},
                     fence == 0 ? "no lease has the fence 0" : "");
}

verdict_or_error block_through(const std::shared_ptr<detail::client_core>& core,
                               std::string_view key,
                               std::chrono::milliseconds length,
                               std::string_view reason) {
    return carry_out(
        core,
        key,
        core::block{.key = std::string(key), .duration = length, .reason = std::string(reason)},
        "");
}

constexpr std::string_view hold_too_short = "a hold must be longer than zero; lift_hold ends one";
/// A hundred years: longer ones are slips of the pen, and would not fit in microseconds.
constexpr std::chrono::milliseconds hold_max = std::chrono::hours{24 * 36'525};
constexpr std::string_view hold_too_long = "a hold must not be longer than a hundred years";

verdict_or_error hold_through(const std::shared_ptr<detail::client_core>& core,
                              std::string_view key,
                              std::chrono::milliseconds length,
                              std::string_view reason) {
    if (length <= std::chrono::milliseconds::zero() || length > hold_max) {
        const auto fault = length > hold_max ? hold_too_long : hold_too_short;
        return carry_out(core, key, core::block{}, fault);
    }
    return block_through(core, key, length, reason);
}

}  // namespace

bool client::revoke(std::string_view key, std::uint64_t fence) {
    const auto told = revoke_through(core_, key, fence);
    if (told.error) {
        throw dibs::error(told.error, told.message);
    }
    return told.what == core::verdict::revoked;
}

bool client::revoke(std::string_view key, std::uint64_t fence, std::error_code& error) noexcept {
    const auto told = revoke_through(core_, key, fence);
    error = told.error;
    return told.what == core::verdict::revoked;
}

void client::hold(std::string_view key, std::chrono::milliseconds length, std::string_view reason) {
    const auto told = hold_through(core_, key, length, reason);
    if (told.error) {
        throw dibs::error(told.error, told.message);
    }
}

void client::hold(std::string_view key,
                  std::chrono::milliseconds length,
                  std::string_view reason,
                  std::error_code& error) noexcept {
    error = hold_through(core_, key, length, reason).error;
}

void client::lift_hold(std::string_view key) {
    const auto told = block_through(core_, key, {}, {});
    if (told.error) {
        throw dibs::error(told.error, told.message);
    }
}

void client::lift_hold(std::string_view key, std::error_code& error) noexcept {
    error = block_through(core_, key, {}, {}).error;
}

}  // namespace dibs
