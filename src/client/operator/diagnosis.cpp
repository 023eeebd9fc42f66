// SPDX-License-Identifier: Apache-2.0
#include "client/operator/diagnosis.hpp"

#include "client/client_core.hpp"
#include "client/host/host_surroundings.hpp"
#include "store/open.hpp"

namespace dibs::detail {

std::vector<store::finding> diagnose(client& of) {
    const auto& core = lease_access::core(of);
    return core && !core->closed() ? core->store().diagnose() : std::vector<store::finding>{};
}

std::optional<std::uint64_t> refused_writes(client& of, std::string_view key) {
    const auto& core = lease_access::core(of);
    return core && !core->closed() ? core->store().refused_writes(key) : std::nullopt;
}

std::vector<store::finding> survey(std::string_view url) {
    host_surroundings around;
    return store::survey(url, around.env());
}

}  // namespace dibs::detail
