// SPDX-License-Identifier: Apache-2.0
#include "simulation/stores/redis/lua_memory.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace dibs::simulation::redis {

namespace {

/// A block that nobody has.
struct spare_block {
    spare_block* next = nullptr;
};

constexpr std::size_t step = 16;
/// Larger ones are rare.
constexpr std::size_t largest = 1024;
/// Blocks of a size are made by so many bytes at once.
constexpr std::size_t made_at_once = 16 * largest;

std::array<spare_block*, largest / step + 1> spare{};

/// Of which size a block is; 0: of its own.
std::size_t steps_of(std::size_t size) noexcept {
    return size <= largest ? (size + step - 1) / step : 0;
}

bool make_some(std::size_t steps) noexcept {
    const auto size = steps * step;
    auto* made = static_cast<std::byte*>(std::malloc(made_at_once));
    if (made == nullptr) {
        return false;
    }
    for (std::size_t at = 0; at + size <= made_at_once; at += size) {
        spare[steps] = new (made + at) spare_block{spare[steps]};
    }
    return true;
}

void* take(std::size_t size) noexcept {
    const auto steps = steps_of(size);
    if (steps == 0) {
        return std::malloc(size);
    }
    if (spare[steps] == nullptr && !make_some(steps)) {
        return nullptr;
    }
    return std::exchange(spare[steps], spare[steps]->next);
}

void give_back(void* given, std::size_t size) noexcept {
    const auto steps = steps_of(size);
    if (steps == 0) {
        std::free(given);
    } else {
        spare[steps] = new (given) spare_block{spare[steps]};
    }
}

}  // namespace

void* lua_memory(void*, void* given, std::size_t size, std::size_t wanted) noexcept {
    if (given == nullptr || size == 0) {
        return wanted == 0 ? nullptr : take(wanted);
    }
    if (wanted == 0) {
        give_back(given, size);
        return nullptr;
    }
    if (steps_of(size) == steps_of(wanted)) {
        return steps_of(size) == 0 ? std::realloc(given, wanted) : given;
    }
    auto* made = take(wanted);
    if (made != nullptr) {
        std::memcpy(made, given, std::min(size, wanted));
        give_back(given, size);
    }
    return made;
}

}  // namespace dibs::simulation::redis
