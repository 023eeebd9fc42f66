// SPDX-License-Identifier: Apache-2.0
#include "client/leases/supervision.hpp"

#include "client/client_core.hpp"

#include <utility>

namespace dibs::detail {

int liveness_descriptor(client& of) noexcept {
    const auto& core = lease_access::core(of);
    return core ? core->store().liveness_descriptor() : -1;
}

void on_deadline(lease& of, std::function<void(std::int64_t)> told) noexcept {
    const auto handle = lease_access::handle(of);
    if (!handle) {
        return;
    }
    handle->core->run([&](core::task done) {
        auto& state = *handle->state;
        told(state.deadline().time_since_epoch().count());
        state.on_deadline = [told = std::move(told)](core::instant deadline) {
            told(deadline.time_since_epoch().count());
        };
        done();
    });
}

std::string renewal_trouble(lease& of) noexcept {
    const auto handle = lease_access::handle(of);
    std::string told;
    if (handle) {
        handle->core->run([&](core::task done) {
            told = handle->state->renewal_trouble();
            done();
        });
    }
    return told;
}

}  // namespace dibs::detail
