// SPDX-License-Identifier: Apache-2.0
#pragma once
// The signals of the wrapper: taken from a descriptor, never by a handler, and given back to the
// child as the caller of the wrapper had set them.

#include <array>
#include <csignal>
#include <optional>

namespace dibs::cli {

/// Blocks every signal that can be caught (but those that tell of a fault in this very program), so
/// that threads started later block them too, and remembers how everything was. To be made before
/// any thread.
class signal_desk {
  public:
    signal_desk();
    ~signal_desk();
    signal_desk(const signal_desk&) = delete;
    signal_desk& operator=(const signal_desk&) = delete;

    /// Readable when a signal has come. Close-on-exec.
    [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

    struct taken {
        int number = 0;
        bool from_kernel = false;  ///< typed at the terminal
    };
    /// The next one; empty when there is none. Never waits.
    [[nodiscard]] std::optional<taken> take() noexcept;

    /// The first TERM, INT or HUP that was taken and that the caller did not want ignored; 0: none yet.
    [[nodiscard]] int told_to_end() const noexcept { return told_to_end_; }

    /// Whether the caller of the wrapper wanted it ignored (nohup).
    [[nodiscard]] bool ignored_before(int number) const noexcept;

    /// Whether it ends a process that does nothing about it.
    [[nodiscard]] static bool ends_by_default(int number) noexcept;

    /// For the child, between fork and exec: mask and dispositions as the wrapper found them.
    void restore_in_child() const noexcept;

  private:
    sigset_t before_{};
    std::array<bool, NSIG> ignored_{};
    int descriptor_ = -1;
    int told_to_end_ = 0;
};

/// Every signal that the wrapper takes from its desk.
[[nodiscard]] sigset_t signals_taken() noexcept;

/// "TERM", "USR1"; a number for those without a name.
[[nodiscard]] const char* signal_name(int number) noexcept;

}  // namespace dibs::cli
