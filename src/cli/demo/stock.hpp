// SPDX-License-Identifier: Apache-2.0
#pragma once
// The stock that two admins sell from: one row with a version, in a PostgreSQL database or in an
// SQLite file.

#include "cli/demo/scene.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace dibs::cli {

struct stock_seen {
    int stock = 0;
    std::optional<int> version;  ///< where it was looked at
};

struct stock_taken {
    bool enough = false;
    int remaining = 0;
};

/// One admin's connection.
class stock_session {
  public:
    using decision = std::function<int(const stock_seen&)>;  ///< what the stock becomes

    virtual ~stock_session() = default;

    /// As people write it: what somebody else writes meanwhile is lost.
    virtual void read_and_write(const decision& decide) = 0;
    /// Decides again when the version has changed meanwhile.
    virtual void update_versioned(const decision& decide) = 0;
    /// Nobody else can write meanwhile.
    virtual void with_lock(const decision& decide) = 0;
    [[nodiscard]] virtual stock_taken take(int amount) = 0;
};

class stock_table {
  public:
    virtual ~stock_table() = default;

    /// Stock 10, version 1.
    virtual void reset() = 0;
    [[nodiscard]] virtual int stock() = 0;
    [[nodiscard]] virtual std::unique_ptr<stock_session> open() const = 0;
    /// What with_lock locks: "the row", "the file".
    [[nodiscard]] virtual std::string locked() const = 0;
};

[[nodiscard]] std::unique_ptr<stock_table> stock_in_postgres(const std::string& url);
/// `file` is new.
[[nodiscard]] std::unique_ptr<stock_table> stock_in_sqlite(const std::string& file);

}  // namespace dibs::cli
