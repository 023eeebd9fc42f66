// SPDX-License-Identifier: Apache-2.0
#pragma once
// Writes down the leases that a recipe takes on its way, as if each had a caller of its own: one that is taken first is
// renewed, and may be lost, long before the recipe has all that it wants.

#include "recipes/lease_witness.hpp"
#include "simulation/workloads/caller.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace dibs::simulation {

class lease_notes final : public recipes::lease_witness {
  public:
    explicit lease_notes(client_process& by) : by_(by) {}

    void asked(const std::string& key, const recipes::mutex_terms& terms) override;
    void told(const std::string& key, const recipes::mutex_outcome& outcome) override;
    recipes::mutex::release_completion gives_back(const core::lease_state& lease) override;

    /// Leases that were taken and not given back.
    [[nodiscard]] std::size_t taken() const noexcept { return taken_; }

  private:
    client_process& by_;
    struct call {
        std::uint64_t number = 0;
        core::nanoseconds ttl{};
    };
    std::map<std::string, call, std::less<>> calls_;  ///< under way, by key
    std::size_t taken_ = 0;
};

}  // namespace dibs::simulation
