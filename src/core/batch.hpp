// SPDX-License-Identifier: Apache-2.0
#pragma once
// How entries travel to a store: in batches, on one of two lanes.

#include "core/unique_function.hpp"
#include "core/verbs.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dibs::core {

inline constexpr std::size_t max_batch_entries = 256;
/// Of what its entries bring for the store to keep, unless it is one entry. A server is to have made
/// something of a batch long before it is taken for dead.
inline constexpr std::size_t max_batch_payload = std::size_t{4} << 20U;

/// Which batches go first, and which may use a connection of their own.
enum class lane : std::uint8_t { renewals, others };

using answers = std::vector<answer>;
using batch_completion = unique_function<void(answers)>;

/// What a batcher sends to: a store, as far as the core knows it. The rules are in store/store.hpp.
class batch_target {
  public:
    batch_target() = default;
    batch_target(const batch_target&) = delete;
    batch_target& operator=(const batch_target&) = delete;
    virtual ~batch_target() = default;

    virtual void execute(lane which, std::vector<entry> batch, batch_completion done) = 0;
};

}  // namespace dibs::core
