// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/plain_sql.hpp"

#include <sqlite3.h>

#include <stdexcept>

namespace dibs::store::sqlite {

plain_file::plain_file(const std::string& path) : path_(path), file_(nullptr, ::sqlite3_close) {
    sqlite3* opened = nullptr;
    const int opening = ::sqlite3_open(path.c_str(), &opened);
    file_.reset(opened);
    if (opening != SQLITE_OK) {
        throw std::runtime_error(path + ": cannot be opened");
    }
    ::sqlite3_busy_timeout(opened, 5'000);
}

plain_answer plain_file::run(const std::string& statements) {
    plain_answer told;
    const auto first_value = [](void* into, int columns, char** values, char** /*names*/) {
        auto& answer = *static_cast<plain_answer*>(into);
        if (columns > 0 && values[0] != nullptr && answer.value.empty()) {
            answer.value = values[0];
        }
        return 0;
    };
    if (::sqlite3_exec(file_.get(), statements.c_str(), first_value, &told, nullptr) != SQLITE_OK) {
        throw std::runtime_error(path_ + ": " + ::sqlite3_errmsg(file_.get()));
    }
    told.changed = ::sqlite3_changes(file_.get());
    return told;
}

plain_answer plain_sql(const std::string& path, const std::string& statements) {
    return plain_file(path).run(statements);
}

}  // namespace dibs::store::sqlite
