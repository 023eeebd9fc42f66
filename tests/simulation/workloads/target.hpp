// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the lock protects: a value somewhere else, reached by messages that may be late. A guarded
// target refuses a writer whose fence is older than one it has seen; an unguarded one takes what
// comes.

#include "core/fence.hpp"
#include "simulation/process/client_process.hpp"
#include "simulation/run/scene.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace dibs::simulation {

class target {
  public:
    target(scene& on, std::string name, bool guarded)
        : scene_(on), name_(std::move(name)), guarded_(guarded), random_(on.chance.split()) {}

    struct answer {
        bool stale = false;  ///< refused: a newer fence was seen
        std::vector<std::int64_t> value;
    };
    using told = std::function<void(const answer&)>;

    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    [[nodiscard]] const std::vector<std::int64_t>& value() const noexcept { return value_; }

    /// Shows the fence, so that older ones are refused from now on.
    void claim(client_process& by, core::fence_number fence, told then);
    void read(client_process& by, told then);
    void write(client_process& by,
               core::fence_number fence,
               std::vector<std::int64_t> value,
               told then);

  private:
    template <typename Act>
    void visit(client_process& by, Act act, told then);

    scene& scene_;
    const std::string name_;
    const bool guarded_;
    random random_;
    core::fence_number seen_ = 0;
    std::vector<std::int64_t> value_;
};

}  // namespace dibs::simulation
