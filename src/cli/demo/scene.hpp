// SPDX-License-Identifier: Apache-2.0
#pragma once
// What every demo goes by: its lengths of time, its files, its store, and how it tells what happens.
// The processes are real and so are their times; the exit status says whether everything came about
// as told.

#include <dibs/client.hpp>

#include <chrono>
#include <string>
#include <string_view>

namespace dibs::cli {

using std::chrono::milliseconds;

struct demo_scene {
    std::string folder;  ///< for its files; gone afterwards
    std::string store;   ///< URL; empty: fresh SQLite files
    std::string data;    ///< URL of a PostgreSQL database for what the work changes; empty: a file
    bool fast = false;   ///< with shorter times

    [[nodiscard]] milliseconds length(milliseconds usual, milliseconds shortened) const {
        return fast ? shortened : usual;
    }
};

[[nodiscard]] client open_demo_client(const std::string& url);

/// One round of a demo: a store and a key that nobody else uses, and a place for the data.
class demo_round {
  public:
    explicit demo_round(const demo_scene& of);

    /// The SQLite file of what the work changes.
    [[nodiscard]] std::string data() const { return folder_ + "/data.db"; }
    [[nodiscard]] const std::string& store() const noexcept { return store_; }
    [[nodiscard]] const std::string& key() const noexcept { return key_; }

    [[nodiscard]] client open() const { return open_demo_client(store_); }
    /// Errors: failure, when the key cannot be had in time.
    [[nodiscard]] lease take(client& through,
                             milliseconds ttl,
                             bool renew,
                             milliseconds wait = milliseconds::zero()) const;

  private:
    std::string folder_;
    std::string store_;
    std::string key_;
};

/// A line with the time of day: `  03:00:00.123  A  has the key`.
void tell(const std::string& who, const std::string& what);
[[nodiscard]] std::string in_seconds(milliseconds length);

/// The exit status.
[[nodiscard]] int verdict(bool as_told);

}  // namespace dibs::cli
