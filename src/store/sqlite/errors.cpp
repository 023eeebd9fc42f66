// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/errors.hpp"

#include "core/key.hpp"

#include <dibs/error.hpp>

#include <sqlite3.h>

#include <cerrno>
#include <cstring>

namespace dibs::store::sqlite {

namespace {

constexpr std::size_t shown_bytes_max = 300;

struct meaning {
    errc code;
    std::string_view advice;
};

meaning meaning_of_errno(int number) {
    switch (number) {
        case EACCES:
        case EPERM:
            return {errc::permission_denied,
                    "give this user the right to read and write the file and its folder"};
        case EROFS:
            return {errc::permission_denied, "put the store on a writable file system"};
        case ENOSPC:
        case EDQUOT:
            return {errc::store_refused, "free some space and try again"};
        case EMFILE:
        case ENFILE:
            return {errc::store_refused, "raise the limit of open files (ulimit -n)"};
        case EISDIR:
            return {errc::invalid_argument, "name a file, not a folder"};
        case ENAMETOOLONG:
            return {errc::invalid_argument, "choose a shorter path"};
        default:
            return {errc::store_unreachable, "check the path"};
    }
}

/// What the system said when SQLite could not open, read or write a file; 0: not known.
int system_error_of(sqlite3* db, int code) {
    const bool of_system = (code & 0xff) == SQLITE_CANTOPEN || (code & 0xff) == SQLITE_IOERR;
    return of_system && db != nullptr ? sqlite3_system_errno(db) : 0;
}

meaning meaning_of(sqlite3* db, int code) {
    switch (code & 0xff) {
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
            return {errc::store_busy,
                    "another process kept the file locked; look for one that holds a long "
                    "transaction on it"};
        case SQLITE_FULL:
            return {errc::store_refused, "the disk is full: free some space and try again"};
        case SQLITE_READONLY:
            return {errc::permission_denied,
                    "give this user the right to write the file and its folder"};
        case SQLITE_PERM:
        case SQLITE_AUTH:
            return {errc::permission_denied, "check the rights of the file and its folder"};
        case SQLITE_CANTOPEN:
        case SQLITE_IOERR: {
            const int number = system_error_of(db, code);
            if (number != 0) {
                return meaning_of_errno(number);
            }
            return {errc::store_unreachable, "check the path, the disk and the system's log"};
        }
        case SQLITE_NOTADB:
            return {errc::store_damaged,
                    "it is left as it is; name another path, or move the file away"};
        case SQLITE_CORRUPT:
            return {errc::store_damaged,
                    "stop all users of the file, keep a copy, and start with a new one"};
        case SQLITE_NOMEM:
            return {errc::store_refused, "out of memory"};
        case SQLITE_TOOBIG:
            return {errc::invalid_argument, "the value is too large for the store"};
        case SQLITE_INTERRUPT:
            return {errc::closed, "the store was closed"};
        default:
            return {errc::store_damaged,
                    "the tables of the file are not as this release made them"};
    }
}

}  // namespace

std::string shown_path(const std::string& path) {
    return core::printable(path, shown_bytes_max);
}

failure nothing_there(const std::string& path) {
    return {errc::store_unreachable,
            shown_path(path) +
                ": there is no store at this path; the first lease or hold makes one (dibs run, "
                "once, elect, acquire or hold), unless the URL says create=no"};
}

failure not_a_database(const std::string& path) {
    return {errc::store_damaged,
            shown_path(path) +
                ": not a database, and left as it is; name another path, or move the file away"};
}

failure translate(sqlite3* db, int code, std::string_view doing) {
    const auto means = meaning_of(db, code);
    std::string text{doing};
    text += ": ";
    // The connection's own message says more than the code's, when it is about this very error.
    const bool own = db != nullptr && (sqlite3_errcode(db) & 0xff) == (code & 0xff);
    text += own ? sqlite3_errmsg(db) : sqlite3_errstr(code);
    text += " (SQLite ";
    text += std::to_string(own ? sqlite3_extended_errcode(db) : code);
    text += ")";
    if (const int number = system_error_of(db, code); number != 0) {
        text += ": " + std::generic_category().message(number);
    }
    text += "; ";
    text += means.advice;
    return {means.code, std::move(text)};
}

failure translate_errno(int number, std::string_view doing) {
    const auto means = meaning_of_errno(number);
    std::string text{doing};
    text += ": ";
    text += std::generic_category().message(number);
    text += "; ";
    text += means.advice;
    return {means.code, std::move(text)};
}

}  // namespace dibs::store::sqlite
