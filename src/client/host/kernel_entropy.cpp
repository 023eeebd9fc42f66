// SPDX-License-Identifier: Apache-2.0
#include "client/host/kernel_entropy.hpp"

#include <sys/mman.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <mutex>
#include <new>
#include <system_error>
#include <utility>

namespace dibs::detail {

namespace {

void from_kernel(std::span<std::byte> bytes) {
    while (!bytes.empty()) {
        const auto got = ::getrandom(bytes.data(), bytes.size(), 0);
        if (got < 0) {
            if (errno == EINTR) {
                continue;
            }
            throw std::system_error(
                errno, std::generic_category(), "the kernel gives no randomness");
        }
        bytes = bytes.subspan(static_cast<std::size_t>(got));
    }
}

}  // namespace

// A page of its own, all zero in a forked child: nothing is left there.
struct kernel_entropy::piece {
    std::size_t left;
    std::array<std::byte, 1024> bytes;
};

void kernel_entropy::unmap::operator()(piece* of) const noexcept {
    ::munmap(of, sizeof *of);
}

kernel_entropy::kernel_entropy() {
    auto* const page =
        ::mmap(nullptr, sizeof(piece), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        return;
    }
    const bool emptied_by_fork = ::madvise(page, sizeof(piece), MADV_WIPEONFORK) == 0;
    std::unique_ptr<piece, unmap> made(::new (page) piece{});
    if (emptied_by_fork) {
        drawn_ = std::move(made);
    }
}

kernel_entropy::~kernel_entropy() = default;

void kernel_entropy::fill(std::span<std::byte> bytes) {
    if (!drawn_ || bytes.size() > drawn_->bytes.size()) {
        from_kernel(bytes);
        return;
    }
    const std::lock_guard lock(mutex_);
    if (drawn_->left < bytes.size()) {
        from_kernel(drawn_->bytes);
        drawn_->left = drawn_->bytes.size();
    }
    drawn_->left -= bytes.size();
    const auto from = drawn_->bytes.begin() + static_cast<std::ptrdiff_t>(drawn_->left);
    const auto until = from + static_cast<std::ptrdiff_t>(bytes.size());
    std::copy(from, until, bytes.begin());
    std::fill(from, until, std::byte{0});
}

}  // namespace dibs::detail
