// SPDX-License-Identifier: Apache-2.0
#include "core/sha256.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace dibs::core {

namespace {

using word = std::uint32_t;

constexpr std::size_t block_bytes = 64;

/// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
constexpr std::array<word, 64> constants{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

using digest = std::array<word, 8>;

/// The first 32 bits of the fractional parts of the square roots of the first 8 primes.
constexpr digest beginning{0x6a09e667,
                           0xbb67ae85,
                           0x3c6ef372,
                           0xa54ff53a,
                           0x510e527f,
                           0x9b05688c,
                           0x1f83d9ab,
                           0x5be0cd19};

void take_in(digest& state, std::string_view block) {
    std::array<word, 64> schedule{};
    for (std::size_t at = 0; at < 16; ++at) {
        for (std::size_t byte = 0; byte < 4; ++byte) {
            schedule[at] = schedule[at] << 8U | static_cast<unsigned char>(block[4 * at + byte]);
        }
    }
    for (std::size_t at = 16; at < schedule.size(); ++at) {
        const auto far = schedule[at - 15];
        const auto near = schedule[at - 2];
        schedule[at] = schedule[at - 16] + schedule[at - 7] +
                       (std::rotr(far, 7) ^ std::rotr(far, 18) ^ far >> 3U) +
                       (std::rotr(near, 17) ^ std::rotr(near, 19) ^ near >> 10U);
    }
    auto [a, b, c, d, e, f, g, h] = state;
    for (std::size_t at = 0; at < schedule.size(); ++at) {
        const auto one = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                         ((e & f) ^ (~e & g)) + constants[at] + schedule[at];
        const auto other =
            (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        h = g;
        g = f;
        f = e;
        e = d + one;
        d = c;
        c = b;
        b = a;
        a = one + other;
    }
    const digest mixed{a, b, c, d, e, f, g, h};
    for (std::size_t at = 0; at < state.size(); ++at) {
        state[at] += mixed[at];
    }
}

}  // namespace

std::string sha256_of(std::string_view bytes) {
    auto state = beginning;
    const auto bits = static_cast<std::uint64_t>(bytes.size()) * 8;
    while (bytes.size() >= block_bytes) {
        take_in(state, bytes.substr(0, block_bytes));
        bytes.remove_prefix(block_bytes);
    }
    std::string rest(bytes);
    rest += '\x80';
    rest.append((2 * block_bytes - 8 - rest.size()) % block_bytes, '\0');
    for (int shift = 56; shift >= 0; shift -= 8) {
        rest += static_cast<char>(bits >> static_cast<unsigned>(shift) & 0xffU);
    }
    for (std::string_view left = rest; !left.empty(); left.remove_prefix(block_bytes)) {
        take_in(state, left.substr(0, block_bytes));
    }
    constexpr std::string_view digits = "0123456789abcdef";
    std::string shown;
    for (const auto part : state) {
        for (int shift = 28; shift >= 0; shift -= 4) {
            shown += digits[part >> static_cast<unsigned>(shift) & 0xfU];
        }
    }
    return shown;
}

}  // namespace dibs::core
