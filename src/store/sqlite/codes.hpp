// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the database makes of SQLite's result codes.

#include <sqlite3.h>

namespace dibs::store::sqlite {

/// Not a code of SQLite's: the file behind the connection is no longer the one at its path.
inline constexpr int moved = -1;

[[nodiscard]] inline bool busy(int code) noexcept {
    return (code & 0xff) == SQLITE_BUSY || (code & 0xff) == SQLITE_LOCKED;
}

/// Trouble of the whole file, as opposed to trouble with one value.
[[nodiscard]] inline bool of_the_file(int code) noexcept {
    switch (code & 0xff) {
        case SQLITE_TOOBIG:
        case SQLITE_CONSTRAINT:
        case SQLITE_MISMATCH:
        case SQLITE_RANGE:
            return false;
        default:
            return true;
    }
}

}  // namespace dibs::store::sqlite
