// SPDX-License-Identifier: Apache-2.0
#pragma once
// One place where the words of SQLite and of the system become ours.

#include <string>
#include <string_view>
#include <system_error>

struct sqlite3;

namespace dibs::store::sqlite {

struct failure {
    std::error_code error;
    std::string detail;  ///< for people: what, native text, what to do

    explicit operator bool() const noexcept { return static_cast<bool>(error); }
};

/// What SQLite answered on `db` (may be null), while `doing`.
[[nodiscard]] failure translate(sqlite3* db, int code, std::string_view doing);

/// What a system call answered, while `doing` (names the path).
[[nodiscard]] failure translate_errno(int number, std::string_view doing);

}  // namespace dibs::store::sqlite
