// SPDX-License-Identifier: Apache-2.0
#pragma once
// The law of effects, for models that run the requests of a store: what is told as carried out was,
// and so it was told; what is told as surely not carried out was not (store/store.hpp, EFFECT).

#include "core/verbs.hpp"
#include "simulation/history/invariants.hpp"

#include <utility>
#include <vector>

namespace dibs::simulation {

class told_effects {
  public:
    explicit told_effects(invariants& laws) : laws_(laws) {}

    /// By the server, for the batch under way.
    void carried_out(const core::verb& what, const core::answer& given) {
        done_.emplace_back(what, given);
    }
    /// To the client, at the end of it.
    void told(const std::vector<core::entry>& batch, const std::vector<core::answer>& given);

  private:
    invariants& laws_;
    std::vector<std::pair<core::verb, core::answer>> done_;
};

}  // namespace dibs::simulation
