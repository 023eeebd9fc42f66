// SPDX-License-Identifier: Apache-2.0
#pragma once
// How many seeds a test of the simulator takes: one where a sanitizer makes runs twenty times slower.

#include <cstdint>

namespace dibs::simulation {

[[nodiscard]] constexpr std::uint64_t seeds_for_test(std::uint64_t usual) noexcept {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return usual == 0 ? 0 : 1;
#else
    return usual;
#endif
}

}  // namespace dibs::simulation
