// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a server, or the way to it, said: an error of ours, with words for people.

#include <string>
#include <system_error>

namespace dibs::store::remote {

struct trouble {
    std::error_code error;
    std::string detail;  ///< where, what happened, what to do
};

}  // namespace dibs::store::remote
