// SPDX-License-Identifier: Apache-2.0
#pragma once
// The store `memory:`, for tests and for programs of one process: records live as long as somebody
// has them open. Not for excluding other processes: nothing leaves this one.

#include "core/environment.hpp"
#include "core/time.hpp"
#include "core/verbs.hpp"
#include "store/store.hpp"

#include <functional>
#include <memory>
#include <string>

namespace dibs::store {

struct memory_options {
    /// `memory:NAME` is shared by all that open it in this process; empty: private to this store
    /// object.
    std::string name;
    /// Whom `held` names.
    core::party who;
    /// The store's clock; required. Stores that share a name must bring the same one.
    std::function<core::store_now()> clock;
    /// Wakes every process at each release and tells whose it was, as a server does that publishes.
    /// Stores that share a name must agree.
    bool wakes_all = false;
};

/// Every store object counts as a process of its own: what it granted attached ends when it is
/// closed. Errors: throws std::invalid_argument when there is no clock.
[[nodiscard]] std::unique_ptr<store> make_memory_store(core::environment env,
                                                       memory_options options);

}  // namespace dibs::store
