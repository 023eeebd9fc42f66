// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "store/store.hpp"

#include <cstddef>
#include <string>

namespace dibs::store::remote {

/// What `store::list` is asked for.
struct listing {
    std::string prefix;
    std::string after;
    std::size_t limit = 0;
    page_completion done;
};

}  // namespace dibs::store::remote
