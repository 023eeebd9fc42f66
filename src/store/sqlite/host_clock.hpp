// SPDX-License-Identifier: Apache-2.0
#pragma once
// The clock that all processes of this host agree on: CLOCK_BOOTTIME, which counts suspend and
// cannot be stepped, with the offset of a time namespace taken off, so that containers agree as
// well. It means something within one boot.

#include "core/time.hpp"
#include "store/sqlite/errors.hpp"

#include <string>
#include <string_view>

namespace dibs::store::sqlite {

class host_clock {
  public:
    /// Fails in a process whose time namespace is not the one that the kernel tells the offset of.
    [[nodiscard]] static failure open(host_clock& opened);

    [[nodiscard]] core::store_now now() const noexcept;

  private:
    core::nanoseconds offset_{};
};

/// The line "boottime SECONDS NANOSECONDS" of /proc/self/timens_offsets; 0 without one.
[[nodiscard]] core::nanoseconds boot_offset(std::string_view offsets);

/// The kernel's name of this boot.
[[nodiscard]] failure read_boot_id(std::string& id);

}  // namespace dibs::store::sqlite
