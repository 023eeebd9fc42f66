// SPDX-License-Identifier: Apache-2.0
// Of a build without OpenSSL.
#include "client/recipes/sealing.hpp"

namespace dibs::detail {

std::unique_ptr<recipes::sealer> make_sealer(std::string_view, std::string& fault) {
    fault = "this build cannot seal values: it was made with DIBS_WITH_TLS=OFF";
    return nullptr;
}

std::string new_sealing_key() {
    return {};
}

}  // namespace dibs::detail
