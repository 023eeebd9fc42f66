// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the client stands on in a simulated process.

#include "client/surroundings.hpp"
#include "simulation/process/process.hpp"

#include <memory>

namespace dibs::simulation {

class client_surroundings final : public detail::surroundings {
  public:
    explicit client_surroundings(process& in) : process_(in) {}

    [[nodiscard]] core::environment env() noexcept override { return process_.env(); }
    void start() override {}
    /// As the real one, but nobody stands and waits. In a process that was killed nothing of this
    /// reaches anybody: it lets go of memory alone.
    void end(detail::ending& client, std::shared_ptr<const void> keep) noexcept override;

  private:
    process& process_;
};

}  // namespace dibs::simulation
