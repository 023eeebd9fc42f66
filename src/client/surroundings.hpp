// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a client stands on and does not look behind: an executor, a clock, randomness, a place to
// tell of losses, and the way in which it waits for its own end. The real ones are in
// host_surroundings.hpp; the simulator brings virtual time and a process that can be paused and
// killed.

#include "core/environment.hpp"

#include <memory>

namespace dibs::detail {

/// The three steps in which a client ends, each to be run on the executor.
class ending {
  public:
    /// Gives back what is held.
    virtual void begin_end() = 0;
    /// Whether the store has answered all of that.
    [[nodiscard]] virtual bool settled() const = 0;
    /// Lets go of the store.
    virtual void finish_end() = 0;

  protected:
    ~ending() = default;
};

class surroundings {
  public:
    virtual ~surroundings() = default;

    [[nodiscard]] virtual core::environment env() noexcept = 0;

    /// From now on timers fire.
    virtual void start() = 0;

    /// Takes the client through its end; no timer fires and no task runs afterwards. Called once.
    /// `keep` keeps the client, so that its end may come after this returns; empty when it is being
    /// destroyed.
    virtual void end(ending& client, std::shared_ptr<const void> keep) noexcept = 0;
};

}  // namespace dibs::detail
