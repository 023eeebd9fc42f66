// SPDX-License-Identifier: Apache-2.0
// Bytes are never given out twice: not to two callers, and not to parent and child of a fork.

#include "client/host/kernel_entropy.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <set>

namespace dibs::detail {

namespace {

using id = std::array<std::byte, 16>;

id drawn_from(kernel_entropy& source) {
    id drawn{};
    source.fill(drawn);
    return drawn;
}

}  // namespace

TEST(KernelEntropy, NothingIsGivenOutTwice) {
    kernel_entropy source;
    std::set<id> seen;
    for (int number = 0; number < 5000; ++number) {
        EXPECT_TRUE(seen.insert(drawn_from(source)).second);
    }
}

TEST(KernelEntropy, WhatIsTooLargeForItsPieceIsFilledToo) {
    kernel_entropy source;
    std::array<std::byte, 5000> bytes{};
    source.fill(bytes);
    EXPECT_LT(std::count(bytes.end() - 1000, bytes.end(), std::byte{0}), 100);
}

TEST(KernelEntropy, AForkedChildDrawsItsOwn) {
    kernel_entropy source;
    drawn_from(source);
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const auto child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        std::array<id, 64> all;
        for (auto& one : all) {
            one = drawn_from(source);
        }
        const auto written = ::write(ends[1], all.data(), sizeof all);
        ::_exit(written == sizeof all ? 0 : 1);
    }
    ::close(ends[1]);
    std::array<id, 64> of_child;
    EXPECT_EQ(::read(ends[0], of_child.data(), sizeof of_child), ssize_t{sizeof of_child});
    ::close(ends[0]);
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    std::set<id> seen(of_child.begin(), of_child.end());
    EXPECT_EQ(seen.size(), of_child.size());
    for (int number = 0; number < 64; ++number) {
        EXPECT_TRUE(seen.insert(drawn_from(source)).second) << "parent and child drew the same";
    }
}

}  // namespace dibs::detail
