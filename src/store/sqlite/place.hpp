// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where a store may lie: makes folder and file for their user alone, and refuses file systems that
// other hosts write, because locks and shared memory do not reach across hosts there.

#include "store/sqlite/errors.hpp"

#include <sys/types.h>

#include <string>
#include <string_view>

namespace dibs::store::sqlite {

/// Turns `path` into the one name of the file (absolute, links followed) and sees to it that it
/// exists. Never opens the file: closing it would drop the locks that this process has on it
/// through SQLite.
[[nodiscard]] failure prepare_place(std::string& path);

/// Empty if a file system of this kind is fine; else its name for people. `type`: statfs' f_type;
/// `name`: as in /proc/self/mountinfo, needed for FUSE alone.
[[nodiscard]] std::string_view shared_between_hosts(long type, std::string_view name) noexcept;

/// The kind of the file system with this device number, as the kernel lists it; may be empty.
[[nodiscard]] std::string kind_of_mount(dev_t device);

}  // namespace dibs::store::sqlite
