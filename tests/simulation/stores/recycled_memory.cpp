// SPDX-License-Identifier: Apache-2.0
#include "simulation/stores/recycled_memory.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace dibs::simulation {

namespace {

struct alignas(std::max_align_t) block {
    std::size_t size = 0;   ///< of what follows
    block* next = nullptr;  ///< while nobody has it
};

constexpr std::size_t step = 64;
/// Larger ones are rare.
constexpr std::size_t largest = 8192;

std::array<block*, largest / step + 1> spare{};

std::size_t rounded(std::size_t wanted) noexcept {
    return (wanted + step - 1) / step * step;
}

block* block_of(void* given) noexcept {
    return static_cast<block*>(given) - 1;
}

void* take(int wanted) {
    const auto size = rounded(static_cast<std::size_t>(wanted));
    if (size <= largest) {
        if (auto*& first = spare[size / step]; first != nullptr) {
            return std::exchange(first, first->next) + 1;
        }
    }
    auto* made = static_cast<block*>(std::malloc(sizeof(block) + size));
    if (made == nullptr) {
        return nullptr;
    }
    made->size = size;
    return made + 1;
}

void give_back(void* given) {
    if (given == nullptr) {
        return;
    }
    auto* which = block_of(given);
    if (which->size > largest) {
        std::free(which);
        return;
    }
    which->next = std::exchange(spare[which->size / step], which);
}

int size_of(void* given) {
    return given == nullptr ? 0 : static_cast<int>(block_of(given)->size);
}

void* resize(void* given, int wanted) {
    if (wanted <= size_of(given)) {
        return given;
    }
    auto* made = take(wanted);
    if (made != nullptr) {
        std::memcpy(made, given, static_cast<std::size_t>(size_of(given)));
        give_back(given);
    }
    return made;
}

int round_up(int wanted) {
    return static_cast<int>(rounded(static_cast<std::size_t>(wanted)));
}
int begin(void*) {
    return SQLITE_OK;
}
void end(void*) {}

}  // namespace

const sqlite3_mem_methods& recycled_memory() noexcept {
    static const sqlite3_mem_methods made{
        &take, &give_back, &resize, &size_of, &round_up, &begin, &end, nullptr};
    return made;
}

}  // namespace dibs::simulation
