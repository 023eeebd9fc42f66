// SPDX-License-Identifier: Apache-2.0
#pragma once
// A terminal for a command under test.

#include "support.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <unistd.h>

#include <string>

namespace dibs::testing {

/// A terminal with somebody who types and reads.
class screen {
  public:
    explicit screen(unsigned short columns = 300) {
        const winsize size{24, columns, 0, 0};
        EXPECT_EQ(::openpty(&keyboard_, &terminal_, nullptr, nullptr, &size), 0);
    }
    ~screen() {
        ::close(keyboard_);
        close_terminal();
    }
    screen(const screen&) = delete;
    screen& operator=(const screen&) = delete;

    [[nodiscard]] int terminal() const noexcept { return terminal_; }
    void close_terminal() {
        if (terminal_ >= 0) {
            ::close(terminal_);
            terminal_ = -1;
        }
    }
    void type(const std::string& keys) const {
        EXPECT_EQ(::write(keyboard_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
    }
    /// Whether the text comes to stand there.
    [[nodiscard]] bool shows(const std::string& text) {
        return eventually([&] {
            look();
            return seen_.find(text) != std::string::npos;
        });
    }
    [[nodiscard]] const std::string& seen() {
        look();
        return seen_;
    }
    void forget() { seen_.clear(); }

  private:
    void look() {
        pollfd ready{keyboard_, POLLIN, 0};
        char buffer[512];
        while (::poll(&ready, 1, 0) > 0 && (ready.revents & POLLIN) != 0) {
            const auto got = ::read(keyboard_, buffer, sizeof buffer);
            if (got <= 0) {
                return;
            }
            seen_.append(buffer, static_cast<std::size_t>(got));
        }
    }

    int keyboard_ = -1;
    int terminal_ = -1;
    std::string seen_;
};

inline launch at(const screen& where, launch how) {
    how.terminal = where.terminal();
    return how;
}

}  // namespace dibs::testing
