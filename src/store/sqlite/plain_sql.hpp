// SPDX-License-Identifier: Apache-2.0
#pragma once
// Statements on an SQLite file that is no store of ours: the data that a demo protects, or fails
// to. Not for stores.

#include <cstdint>
#include <string>

namespace dibs::store::sqlite {

struct plain_answer {
    std::int64_t changed = 0;  ///< rows, by the last statement
    std::string value;         ///< first column of the first row
};

/// Opens the file, making it if need be, and executes the statements. Errors: std::runtime_error.
plain_answer plain_sql(const std::string& path, const std::string& statements);

}  // namespace dibs::store::sqlite
