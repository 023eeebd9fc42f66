// SPDX-License-Identifier: Apache-2.0
#pragma once
// What stands at the far end of a line: a store's model, as far as the network knows it.

#include "core/verbs.hpp"
#include "simulation/world/world.hpp"
#include "store/store.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace dibs::simulation {

/// Names a process to a server.
using session = std::uint64_t;

class server {
  public:
    using waker = std::function<void(store::wake_by)>;

    virtual ~server() = default;

    [[nodiscard]] virtual const store::capabilities& caps() const = 0;

    /// Whether it takes connections just now.
    [[nodiscard]] virtual bool up() const = 0;

    /// Carries out a batch that left at `sent`, in one step of the run.
    [[nodiscard]] virtual store::answers execute(session from,
                                                 sim_time sent,
                                                 const std::vector<core::entry>& batch) = 0;
    [[nodiscard]] virtual core::page list(session from,
                                          const std::string& prefix,
                                          const std::string& after,
                                          std::size_t limit) = 0;

    /// One watcher per session and key; `wake` is sent to it.
    virtual void watch(session from, const std::string& key, waker wake) = 0;
    virtual void unwatch(session from, const std::string& key) = 0;
    /// Tells a session, by its key, of the end of a grant with which it left word. One per session.
    using notice = std::function<void(const std::string& key)>;
    virtual void hear_notices(session from, notice tell) {
        static_cast<void>(from);
        static_cast<void>(tell);
    }
    /// Its connections are gone.
    virtual void leave(session from) = 0;
};

}  // namespace dibs::simulation
