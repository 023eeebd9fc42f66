// SPDX-License-Identifier: Apache-2.0
#include "client/complaint.hpp"

#include "client/client_core.hpp"
#include "core/key.hpp"

namespace dibs::detail {

namespace {

/// What a store says of a step begins with the file or server that it is about, and is told in the place of `store`.
std::string_view without_place(std::string_view store, std::string_view what) {
    const auto end = what.find(": ");
    const auto place = what.substr(0, end);
    const bool same = end != std::string_view::npos && place.find('/') != std::string_view::npos &&
                      store.ends_with(place);
    return same ? what.substr(end + 2) : what;
}

}  // namespace

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
           "): " + std::string(without_place(store, what));
}

}  // namespace dibs::detail
