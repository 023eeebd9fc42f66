// SPDX-License-Identifier: Apache-2.0
// Goal: over TLS, callers that write their requests themselves and the thread that reads do not get
// into each other's way. Method: many blocking callers, keys of their own and one for all.

#include "support/redis_server.hpp"

#include <dibs/dibs.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace dibs::testing {

using namespace std::chrono_literals;

TEST(RedisTlsCallers, DoNotGetIntoEachOthersWay) {
    constexpr int callers = 8;
    constexpr int cycles = 150;
    const test_certificates made;
    const redis_server server{made.server(), {}};
    client connected{"rediss://127.0.0.1:" + std::to_string(server.port()) + "?ca=" + made.ca()};
    std::atomic<int> granted{0};
    std::atomic<int> inside{0};
    std::atomic<int> overlaps{0};
    {
        std::vector<std::jthread> all;
        for (int who = 0; who < callers; ++who) {
            all.emplace_back([&, who] {
                for (int at = 0; at < cycles; ++at) {
                    auto own = connected.try_acquire("own:" + std::to_string(who));
                    granted += own ? 1 : 0;
                    own.reset();
                    if (at % 10 == 0) {
                        auto shared = connected.acquire("all", {.ttl = 20s, .wait = 30s});
                        granted += shared ? 1 : 0;
                        overlaps += inside.fetch_add(1) == 0 ? 0 : 1;
                        --inside;
                    }
                }
            });
        }
    }
    EXPECT_EQ(granted, callers * (cycles + cycles / 10));
    EXPECT_EQ(overlaps, 0);
}

}  // namespace dibs::testing
