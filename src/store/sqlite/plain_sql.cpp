// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/plain_sql.hpp"

#include <sqlite3.h>

#include <memory>
#include <stdexcept>

namespace dibs::store::sqlite {

plain_answer plain_sql(const std::string& path, const std::string& statements) {
    sqlite3* opened = nullptr;
    const int opening = ::sqlite3_open(path.c_str(), &opened);
    const std::unique_ptr<sqlite3, int (*)(sqlite3*)> file(opened, ::sqlite3_close);
    if (opening != SQLITE_OK) {
        throw std::runtime_error(path + ": cannot be opened");
    }
    ::sqlite3_busy_timeout(file.get(), 5'000);
    plain_answer told;
    const auto first_value = [](void* into, int columns, char** values, char** /*names*/) {
        auto& answer = *static_cast<plain_answer*>(into);
        if (columns > 0 && values[0] != nullptr && answer.value.empty()) {
            answer.value = values[0];
        }
        return 0;
    };
    if (::sqlite3_exec(file.get(), statements.c_str(), first_value, &told, nullptr) != SQLITE_OK) {
        throw std::runtime_error(path + ": " + ::sqlite3_errmsg(file.get()));
    }
    told.changed = ::sqlite3_changes(file.get());
    return told;
}

}  // namespace dibs::store::sqlite
