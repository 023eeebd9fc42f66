// SPDX-License-Identifier: Apache-2.0
#pragma once
// The clock that counts suspend, read in a way that is allowed between fork and exec.

#include "core/time.hpp"

#include <ctime>

namespace dibs::cli {

[[nodiscard]] inline core::instant boot_now() noexcept {
    timespec now{};
    ::clock_gettime(CLOCK_BOOTTIME, &now);
    return core::instant{std::chrono::seconds{now.tv_sec} + core::nanoseconds{now.tv_nsec}};
}

[[nodiscard]] constexpr timespec as_timespec(core::instant moment) noexcept {
    const auto since = moment.time_since_epoch();
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since);
    return {static_cast<time_t>(seconds.count()), static_cast<long>((since - seconds).count())};
}

}  // namespace dibs::cli
