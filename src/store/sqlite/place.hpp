// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where a store may lie: makes the file for its user alone, and refuses file systems that other
// hosts write, because locks and shared memory do not reach across hosts there.

#include "store/sqlite/errors.hpp"

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

namespace dibs::store::sqlite {

/// Turns `path` into the one name of the file (absolute, links followed) and sees to it that it
/// exists: `make` makes it, in a folder that is there, otherwise it must be there. Never opens the
/// file: closing it would drop the locks that this process has on it through SQLite.
[[nodiscard]] failure prepare_place(std::string& path, bool make);

/// What stays the same for as long as somebody has a file open, and no other file has.
struct file_identity {
    dev_t device = 0;
    ino_t number = 0;
    friend bool operator==(const file_identity&, const file_identity&) = default;
};

/// Of what lies at the path now; empty: nothing that can be seen.
[[nodiscard]] std::optional<file_identity> identity_of(const std::string& path) noexcept;

/// Empty if a file system of this kind is fine; else its name for people. `type`: statfs' f_type;
/// `name`: as in /proc/self/mountinfo, needed for FUSE alone.
[[nodiscard]] std::string_view shared_between_hosts(long type, std::string_view name) noexcept;

/// The kind of the file system with this device number, as the kernel lists it; may be empty.
[[nodiscard]] std::string kind_of_mount(dev_t device);

}  // namespace dibs::store::sqlite
