// SPDX-License-Identifier: Apache-2.0
#include "client/diagnosis.hpp"

#include "client/client_core.hpp"

namespace dibs::detail {

std::vector<store::finding> diagnose(client& of) {
    const auto& core = lease_access::core(of);
    return core && !core->closed() ? core->store().diagnose() : std::vector<store::finding>{};
}

}  // namespace dibs::detail
