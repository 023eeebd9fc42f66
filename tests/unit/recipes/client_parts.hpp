// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a client is made of, without threads: on virtual time and a memory store that others share,
// behind a line that can be faulty.

#include "core/batcher.hpp"
#include "core/undo.hpp"
#include "core/watchdog.hpp"
#include "recipes/mutex.hpp"
#include "store/memory/memory_store.hpp"
#include "support/faulty_store.hpp"
#include "support/virtual_environment.hpp"

#include <string>

namespace dibs::recipes::testing {

struct client_parts {
    client_parts(dibs::testing::virtual_environment& in,
                 const std::string& space,
                 bool wakes_all = false)
        : world{in},
          line{in.view(),
               store::make_memory_store(in.view(),
                                        {.name = space,
                                         .who = {},
                                         .clock = in.store_clock().reader(),
                                         .wakes_all = wakes_all})},
          batches{in.view(), line},
          doubts{in.view(), batches},
          dog{in.view(),
              batches,
              doubts,
              {.lost = [this](const lease_ptr& lease) { keys.lost(lease); }, .renewal_failed = {}}},
          keys{in.view(), line, batches, dog, doubts} {}
    client_parts(const client_parts&) = delete;
    client_parts& operator=(const client_parts&) = delete;
    ~client_parts() = default;

    dibs::testing::virtual_environment& world;
    dibs::testing::faulty_store line;
    core::batcher batches;
    core::undo doubts;
    core::watchdog dog;
    mutex keys;
};

}  // namespace dibs::recipes::testing
