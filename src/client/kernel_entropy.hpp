// SPDX-License-Identifier: Apache-2.0
#pragma once
// Randomness from the kernel, drawn in larger pieces: one system call for many holder ids. A forked
// child never sees bytes that its parent drew: the buffer is dropped when the process id has
// changed.

#include "core/environment.hpp"

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <mutex>

namespace dibs::detail {

class kernel_entropy final : public core::entropy {
  public:
    void fill(std::span<std::byte> bytes) override;

  private:
    std::mutex mutex_;
    std::array<std::byte, 1024> drawn_{};
    std::size_t used_ = drawn_.size();
    pid_t drawn_by_ = -1;
};

}  // namespace dibs::detail
