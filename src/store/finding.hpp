// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a store says about its own health: for `dibs doctor`.

#include <cstdint>
#include <string>

namespace dibs::store {

struct finding {
    enum class grade : std::uint8_t {
        ok,
        warning,  ///< works, and should be looked at
        problem,  ///< something is lost, refused or unsafe as it is
    };
    std::string subject;  ///< "journal mode"; the same in every release, for scripts
    grade state = grade::ok;
    std::string what;    ///< how it is
    std::string advice;  ///< what to do; empty when it is fine
};

}  // namespace dibs::store
