// SPDX-License-Identifier: Apache-2.0
#pragma once
// What of a record changes with nearly every step, as bytes of one length, so that a step can write
// them in place: the largest fence and the first grant. Big-endian:
//
//      0  fence          the largest granted so far
//      8  flags          1: there is a grant (else zeros follow), 2: it is attached
//     12  weight
//     16  holder id
//     32  first, last    its fences
//     48  granted        lease, µs
//     56  expires        lease, µs
//     64  boot
//     72  process

#include "core/record.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace dibs::store::sqlite {

using state_bytes = std::array<std::byte, 80>;

struct row_state {
    core::fence_number fence = 0;
    bool held = false;
    core::grant first;  ///< with `held`; whether it is dead is not stored
    std::int64_t boot = 0;
};

/// `first` may be null: no grant.
[[nodiscard]] state_bytes pack(core::fence_number fence,
                               const core::grant* first,
                               std::int64_t boot) noexcept;
[[nodiscard]] row_state unpack(const state_bytes& packed) noexcept;

}  // namespace dibs::store::sqlite
