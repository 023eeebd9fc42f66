// SPDX-License-Identifier: Apache-2.0
#pragma once
// Randomness from the kernel, drawn in larger pieces: one system call for many holder ids. A forked
// child never sees bytes that its parent drew: the kernel empties the child's copy of the piece.

#include "client/host/brief_mutex.hpp"
#include "core/environment.hpp"

#include <memory>

namespace dibs::detail {

class kernel_entropy final : public core::entropy {
  public:
    kernel_entropy();
    ~kernel_entropy() override;

    void fill(std::span<std::byte> bytes) override;

  private:
    struct piece;
    struct unmap {
        void operator()(piece* of) const noexcept;
    };

    brief_mutex mutex_;
    std::unique_ptr<piece, unmap> drawn_;  ///< null: this kernel cannot empty it; nothing is kept
};

}  // namespace dibs::detail
