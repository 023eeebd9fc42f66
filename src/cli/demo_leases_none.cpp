// SPDX-License-Identifier: Apache-2.0
// A build without SQLite has no file for the data of these demos.
#include "cli/demo_leases.hpp"

namespace dibs::cli {

demo_play lease_demo(std::string_view /*name*/) noexcept {
    return nullptr;
}

}  // namespace dibs::cli
