// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the client stands on in a simulated process.

#include "client/surroundings.hpp"
#include "simulation/process/process.hpp"

#include <functional>
#include <memory>
#include <utility>

namespace dibs::simulation {

class client_surroundings final : public detail::surroundings {
  public:
    /// `on_end` is called when a client ends in good order, just before it does.
    client_surroundings(process& in, std::function<void()> on_end)
        : process_(in), on_end_(std::move(on_end)) {}

    [[nodiscard]] core::environment env() noexcept override { return process_.env(); }
    void start() override {}
    /// As the real one, but nobody stands and waits. In a process that was killed nothing of this
    /// reaches anybody: it lets go of memory alone.
    void end(detail::ending& client, std::shared_ptr<const void> keep) noexcept override;

  private:
    process& process_;
    const std::function<void()> on_end_;
};

}  // namespace dibs::simulation
