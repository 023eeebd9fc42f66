// SPDX-License-Identifier: Apache-2.0
#pragma once
// The terminal between wrapper and child.
//
// The child runs in a group of its own, which is in the background at first: so Ctrl-C reaches the
// wrapper, which forwards it once and counts. A child that wants the terminal (reads from it, or
// changes its mode: shells, editors, a password prompt) is stopped for that by the kernel; then it
// gets the terminal, and keeps it, and Ctrl-C is its own affair as without dibs.

#include <sys/types.h>

namespace dibs::cli {

class terminal {
  public:
    /// The controlling terminal, if there is one.
    terminal() noexcept;
    /// Takes it back from the child.
    ~terminal();
    terminal(const terminal&) = delete;
    terminal& operator=(const terminal&) = delete;

    [[nodiscard]] bool exists() const noexcept { return descriptor_ >= 0; }
    /// Whether it is our group's turn.
    [[nodiscard]] bool is_ours() const noexcept;
    /// Makes `group` the foreground group.
    bool give_to(pid_t group) noexcept;
    /// Makes our own group the foreground group, if the child's is.
    void take_back() noexcept;
    [[nodiscard]] bool is_given() const noexcept { return given_to_ > 0; }

  private:
    int descriptor_ = -1;
    pid_t given_to_ = -1;
};

}  // namespace dibs::cli
