// SPDX-License-Identifier: Apache-2.0
#pragma once
// Statements on an SQLite file that is no store of ours: the data that a demo protects, or fails
// to. Not for stores.

#include <cstdint>
#include <memory>
#include <string>

struct sqlite3;

namespace dibs::store::sqlite {

struct plain_answer {
    std::int64_t changed = 0;  ///< rows, by the last statement
    std::string value;         ///< first column of the first row
};

/// An open file. Errors: std::runtime_error.
class plain_file {
  public:
    /// Makes it if need be.
    explicit plain_file(const std::string& path);

    plain_answer run(const std::string& statements);

  private:
    std::string path_;
    std::unique_ptr<sqlite3, int (*)(sqlite3*)> file_;
};

/// Opens the file and executes the statements. Errors: std::runtime_error.
plain_answer plain_sql(const std::string& path, const std::string& statements);

}  // namespace dibs::store::sqlite
