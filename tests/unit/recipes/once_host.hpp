// SPDX-License-Identifier: Apache-2.0
#pragma once
// A host that fires for slots, on virtual time and a memory store that others share.

#include "client_parts.hpp"
#include "recipes/once/once.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace dibs::recipes::testing {

using namespace std::chrono_literals;
using namespace dibs::testing;
using core::nanoseconds;

/// One host. Its destruction is a crash: nothing is given back.
class host : public client_parts {
  public:
    host(virtual_environment& in, const std::string& space, std::string name)
        : client_parts{in, space}, name_{std::move(name)}, slots{in.view(), line, keys, [&in] {
                                                                     return calendar_ms(in);
                                                                 }} {}

    /// Counts with virtual time, from some day.
    static std::int64_t calendar_ms(const virtual_environment& in) {
        return 1'764'460'800'000 +
               std::chrono::duration_cast<std::chrono::milliseconds>(in.now().time_since_epoch())
                   .count();
    }

    [[nodiscard]] once_terms terms(nanoseconds wait = 0s) const {
        once_terms made;
        made.job = "nightly";
        made.slot = "2026-11-29[UTC]";
        made.acquire.lease.ttl = 6s;
        made.acquire.lease.renew_every = 2s;
        made.acquire.lease.attached = false;  // a crash shows by expiry, as over a network
        made.acquire.wait = wait;
        made.acquire.timeout = 5s;
        made.who.host = name_;
        return made;
    }
    using told_ptr = std::shared_ptr<std::optional<once_outcome>>;
    told_ptr start(once_terms with) {
        auto told = std::make_shared<std::optional<once_outcome>>();
        call =
            slots.claim(std::move(with), [told](once_outcome ended) { *told = std::move(ended); });
        return told;
    }
    once_outcome claim(once_terms with) {
        const auto told = start(std::move(with));
        EXPECT_TRUE(world.run_until([&] { return told->has_value(); }, 2h));
        return told->value_or(once_outcome{});
    }
    once_outcome claim() { return claim(terms()); }
    release_reply finish(const once_outcome& run,
                         bool success,
                         int status,
                         const once_terms& with) {
        std::optional<release_reply> told;
        slots.finish(run.lease, with, run.mine, success, status, [&](release_reply heard) {
            told = std::move(heard);
        });
        EXPECT_TRUE(world.run_until([&] { return told.has_value(); }, 1min));
        return told.value_or(release_reply{});
    }
    release_reply finish(const once_outcome& run, bool success, int status = 0) {
        return finish(run, success, status, terms());
    }
    release_reply interrupt(const once_outcome& run, int status, const once_terms& with) {
        std::optional<release_reply> told;
        slots.interrupt(run.lease, with, run.mine, status, [&](release_reply heard) {
            told = std::move(heard);
        });
        EXPECT_TRUE(world.run_until([&] { return told.has_value(); }, 1min));
        return told.value_or(release_reply{});
    }
    /// From now on nothing of it reaches the store.
    void crash() {
        line.plan = [](std::size_t, const auto&) { return fault::lose_request; };
    }

    std::string name_;
    once slots;
    once::call_ptr call;
};

}  // namespace dibs::recipes::testing
