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

/// A path as part of a message: one line, and not so long that the advice is not seen.
[[nodiscard]] std::string shown_path(const std::string& path);

/// Nobody has made a store at the path yet.
[[nodiscard]] failure nothing_there(const std::string& path);

/// What lies at the path was made by something else, and is left as it is.
[[nodiscard]] failure not_a_database(const std::string& path);

/// What SQLite answered on `db` (may be null), while `doing`.
[[nodiscard]] failure translate(sqlite3* db, int code, std::string_view doing);

/// What a system call answered, while `doing` (names the path).
[[nodiscard]] failure translate_errno(int number, std::string_view doing);

}  // namespace dibs::store::sqlite
