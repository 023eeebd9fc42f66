// SPDX-License-Identifier: Apache-2.0
#include "client/host/host_clock.hpp"

#include "client/host/boot_time_source.hpp"

namespace dibs::detail {

core::store_now host_clock_now() noexcept {
    const auto wall = std::chrono::system_clock::now().time_since_epoch();
    return {core::store_instant{
                std::chrono::duration_cast<core::microseconds>(boot_time_now().time_since_epoch())},
            core::wall_instant{std::chrono::duration_cast<core::microseconds>(wall)}};
}

std::int64_t calendar_ms() noexcept {
    return std::chrono::duration_cast<core::milliseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
}

}  // namespace dibs::detail
