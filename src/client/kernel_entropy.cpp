// SPDX-License-Identifier: Apache-2.0
#include "client/kernel_entropy.hpp"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

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

void kernel_entropy::fill(std::span<std::byte> bytes) {
    if (bytes.size() > drawn_.size()) {
        from_kernel(bytes);
        return;
    }
    const std::lock_guard lock(mutex_);
    if (const auto pid = ::getpid(); used_ + bytes.size() > drawn_.size() || pid != drawn_by_) {
        from_kernel(drawn_);
        used_ = 0;
        drawn_by_ = pid;
    }
    const auto from = drawn_.begin() + static_cast<std::ptrdiff_t>(used_);
    const auto until = from + static_cast<std::ptrdiff_t>(bytes.size());
    std::copy(from, until, bytes.begin());
    std::fill(from, until, std::byte{0});
    used_ += bytes.size();
}

}  // namespace dibs::detail
