// SPDX-License-Identifier: Apache-2.0
#pragma once
// While a command waits for a key: for whom, and for how long. One line on the terminal, kept up to
// date in its place and gone when the waiting is over; elsewhere one line with -v, else nothing.

#include <dibs/client.hpp>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace dibs::cli {

class waiting_line {
  public:
    enum class manner {
        silent,
        trouble,   ///< lines that stay, when the store has something against it for long
        once,      ///< as above, and one when the waiting has begun
        in_place,  ///< a line on a terminal, kept up to date
    };
    /// What stderr is good for and the caller wants.
    [[nodiscard]] static manner fitting(bool verbose, bool quiet);

    struct terms {
        manner how = manner::silent;
        std::string key;   ///< what is waited for
        std::string also;  ///< another key, whose hold stands in the way, too; may be empty
        std::chrono::milliseconds wait{};  ///< zero: no waiting; dibs::forever: no limit
    };

    /// Begins, unless nothing is to be told. The store is looked at once a second at most, and not
    /// at all for a key that is had at once. Requires: signals are taken by a desk.
    waiting_line(client& through, terms what);
    /// Ends, whatever the store does, and leaves no trace on the terminal.
    ~waiting_line();
    waiting_line(const waiting_line&) = delete;
    waiting_line& operator=(const waiting_line&) = delete;

    /// Before anything else is said, or the process ends. Idempotent.
    void end() noexcept;

  private:
    struct sight;
    void live();
    void look();
    void tell_trouble();
    [[nodiscard]] std::string text() const;

    client& through_;
    const terms terms_;
    const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
    std::shared_ptr<sight> seen_;  ///< shared with looks under way, which may outlive this
    std::mutex mutex_;
    std::condition_variable over_;
    bool ended_ = false;
    std::string told_trouble_;
    std::thread thread_;
};

/// Cut to so many columns of a terminal, counting a character as one.
[[nodiscard]] std::string cut_to_columns(std::string text, std::size_t columns);

}  // namespace dibs::cli
