// SPDX-License-Identifier: Apache-2.0
#pragma once
// The lock as people write it by hand, with the mistakes that the demos show: a row of one's own,
// or a key of a Redis server. It has no holder, so whoever gives it back gives back anybody's.

#include "cli/demo/scene.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace dibs::cli {

class hand_made_lock {
  public:
    virtual ~hand_made_lock() = default;

    /// False: somebody has it. `ttl`: after it, it may be taken again; none: never.
    [[nodiscard]] virtual bool take(std::optional<milliseconds> ttl) = 0;
    /// Whoever has it. The number of locks that are gone.
    virtual std::int64_t give_back() = 0;

    /// The commands, for people.
    [[nodiscard]] virtual std::string how_taken(bool with_ttl) const = 0;
    [[nodiscard]] virtual std::string how_given_back() const = 0;
    /// What one of it is called: a row, a key.
    [[nodiscard]] virtual std::string thing() const = 0;
};

/// On the Redis server of the round's store, or in the round's file for data. Each process opens its
/// own.
[[nodiscard]] std::unique_ptr<hand_made_lock> open_hand_made_lock(const demo_round& round);

}  // namespace dibs::cli
