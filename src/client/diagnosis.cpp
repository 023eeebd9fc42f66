// SPDX-License-Identifier: Apache-2.0
#include "client/diagnosis.hpp"

#include "client/client_core.hpp"
#include "client/host_surroundings.hpp"
#include "store/open.hpp"

namespace dibs::detail {

std::vector<store::finding> diagnose(client& of) {
    const auto& core = lease_access::core(of);
    return core && !core->closed() ? core->store().diagnose() : std::vector<store::finding>{};
}

std::vector<store::finding> survey(std::string_view url) {
    host_surroundings around;
    return store::survey(url, around.env());
}

}  // namespace dibs::detail
