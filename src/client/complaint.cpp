// SPDX-License-Identifier: Apache-2.0
#include "client/complaint.hpp"

#include "client/client_core.hpp"
#include "core/key.hpp"

namespace dibs::detail {

std::string complaint(const lease_handle* about, std::string_view what) {
    if (about == nullptr) {
        return "empty lease: " + std::string(what);
    }
    return "lease of " + core::printable(about->state->key()) + " (fence " +
           std::to_string(about->state->fence()) + ", store " + about->core->store().location() +
           "): " + std::string(what);
}

std::string complaint(std::string_view key, std::string_view store, std::string_view what) {
    return "key " + core::printable(key) + " (store " + std::string(store) +
           "): " + std::string(what);
}

}  // namespace dibs::detail
