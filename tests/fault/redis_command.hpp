// SPDX-License-Identifier: Apache-2.0
#pragma once
// The command on a real Redis server, with a relay between them that the test may spoil.

#include "support.hpp"
#include "support/redis_server.hpp"
#include "support/relay.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace dibs::testing {

struct redis_command_test : ::testing::Test {
    [[nodiscard]] launch dibs_at(const std::string& url, const std::vector<std::string>& words) {
        launch how;
        how.words = words;
        how.variables["DIBS_STORE"] = url;
        how.cwd = here.path();
        return how;
    }

    redis_server server;
    relay line{server.socket()};
    folder here;
};

}  // namespace dibs::testing
