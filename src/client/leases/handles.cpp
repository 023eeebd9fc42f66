// SPDX-License-Identifier: Apache-2.0
#include "client/leases/handles.hpp"

#include "client/ask.hpp"
#include "client/checked_options.hpp"
#include "client/client_core.hpp"
#include "client/complaint.hpp"
#include "client/leases/adoption.hpp"
#include "client/leases/handed_over.hpp"
#include "core/deadline.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace dibs::detail {

namespace {

constexpr auto patience = std::chrono::seconds{4};

void complain(handle_outcome& told,
              client_core& core,
              std::error_code error,
              std::string_view what) {
    told.error = error;
    told.message = complaint(told.key, core.store().location(), what);
}

/// Null: `told` says why.
std::shared_ptr<client_core> usable(client& through,
                                    std::string_view handle,
                                    std::optional<handed_over>& parsed,
                                    handle_outcome& told) {
    parsed = handed_over::parse(handle);
    if (!parsed) {
        told.error = errc::invalid_argument;
        told.message = "this is not a handle, or more than one; dibs acquire prints one";
        return nullptr;
    }
    told.key = parsed->key;
    told.fence = parsed->fence;
    auto core = lease_access::core(through);
    if (!core) {
        told.error = errc::closed;
        told.message = complaint(told.key, "none", "the client is closed");
    }
    return core;
}

/// Whether the step was executed with the wished-for verdict.
bool went_well(handle_outcome& told,
               client_core& core,
               const core::answer& given,
               core::verdict wished) {
    if (given.took != core::effect::yes) {
        complain(
            told, core, given.error, given.detail.empty() ? given.error.message() : given.detail);
        return false;
    }
    if (given.what == wished) {
        return true;
    }
    const auto why = make_error_code(reason_of(given.lost));
    complain(told,
             core,
             why,
             why.message() +
                 (why == errc::lease_gone ? ", or it was taken from another store" : "") +
                 "; the handle is worthless here");
    return false;
}

}  // namespace

handle_made make_handle(lease& held) noexcept {
    const auto handle = lease_access::handle(held);
    auto ended = hand_over_and_wait(held);
    handle_made told{.text = std::move(ended.text), .error = ended.error, .message = {}};
    if (told.error) {
        const auto what = ended.detail.empty() ? told.error.message() : ended.detail;
        told.message =
            complaint(handle.get(), "it was granted, but could not be detached: " + what);
    }
    return told;
}

handle_outcome renew_handle(client& through,
                            std::string_view handle,
                            std::chrono::milliseconds ttl) noexcept {
    handle_outcome told;
    std::optional<handed_over> parsed;
    const auto core = usable(through, handle, parsed, told);
    if (!core) {
        return told;
    }
    const auto& caps = core->store().caps();
    if (ttl < caps.ttl_min || ttl > caps.ttl_max) {
        complain(told, *core, errc::invalid_argument, fault_of_ttl(ttl, caps));
        return told;
    }
    core::renew asked;
    asked.key = parsed->key;
    asked.holder = parsed->holder;
    asked.ttl = ttl;
    const auto reply = ask(*core, std::move(asked), std::min<core::nanoseconds>(patience, ttl));
    if (went_well(told, *core, reply.given, core::verdict::renewed)) {
        const auto left = core::local_deadline(reply.sent, ttl) - core->env().time.now();
        told.remaining = std::max(std::chrono::duration_cast<std::chrono::milliseconds>(left),
                                  std::chrono::milliseconds{0});
    }
    return told;
}

handle_outcome release_handle(client& through, std::string_view handle) noexcept {
    handle_outcome told;
    std::optional<handed_over> parsed;
    const auto core = usable(through, handle, parsed, told);
    if (!core) {
        return told;
    }
    core::release asked;
    asked.key = parsed->key;
    asked.holder = parsed->holder;
    const auto reply = ask(*core, std::move(asked), patience);
    static_cast<void>(went_well(told, *core, reply.given, core::verdict::released));
    return told;
}

}  // namespace dibs::detail
