// SPDX-License-Identifier: Apache-2.0
// Blocks are used again, never twice at once, and by any thread.

#include "core/recycling_allocator.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <set>
#include <thread>
#include <vector>

namespace dibs::core {

namespace {

struct object {
    std::array<std::uint64_t, 5> words{};
};

}  // namespace

TEST(RecyclingAllocator, NoTwoLivingObjectsShareABlock) {
    recycling_allocator<object> from;
    for (int round = 0; round < 3; ++round) {
        std::vector<object*> all;
        for (int number = 0; number < 2000; ++number) {
            all.push_back(from.allocate(1));
        }
        EXPECT_EQ(std::set<object*>(all.begin(), all.end()).size(), all.size());
        for (auto* const one : all) {
            from.deallocate(one, 1);
        }
    }
}

TEST(RecyclingAllocator, ArraysAreTheSystems) {
    recycling_allocator<object> from;
    auto* const many = from.allocate(100);
    many[99].words[4] = 7;  // within bounds: a sanitizer watches
    from.deallocate(many, 100);
}

TEST(RecyclingAllocator, ThreadsMakeAndDropTogether) {
    constexpr int threads = 4;
    constexpr int rounds = 20'000;
    std::vector<std::thread> all;
    std::array<bool, threads> intact{};
    for (std::size_t number = 0; number < threads; ++number) {
        all.emplace_back([number, &intact] {
            bool good = true;
            std::vector<std::shared_ptr<object>> held;
            for (int round = 0; round < rounds; ++round) {
                auto made = std::allocate_shared<object>(recycling_allocator<object>{});
                made->words.fill(number + 1);
                held.push_back(std::move(made));
                if (held.size() > 20) {
                    for (const auto& one : held) {
                        for (const auto word : one->words) {
                            good = good && word == number + 1;
                        }
                    }
                    held.clear();
                }
            }
            intact[number] = good;
        });
    }
    for (auto& one : all) {
        one.join();
    }
    for (const bool good : intact) {
        EXPECT_TRUE(good);
    }
}

}  // namespace dibs::core
