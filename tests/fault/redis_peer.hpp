// SPDX-License-Identifier: Apache-2.0
#pragma once
// One process' view of a real Redis server, and the verbs said to it.

#include "store/redis/redis_store.hpp"
#include "support/pumped_environment.hpp"
#include "support/redis_server.hpp"
#include "support/verbs.hpp"

#include <dibs/error.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dibs::testing {

using namespace std::chrono_literals;
using core::effect;
using core::loss;
using core::verdict;

class redis_peer {
  public:
    explicit redis_peer(const redis_server& server) {
        options.where.socket = server.socket();
        options.who.host = "here";
    }

    /// By a port of 127.0.0.1 instead of the server's socket.
    void lead_through(int port) {
        options.where.socket.clear();
        options.where.host = "127.0.0.1";
        options.where.port = static_cast<std::uint16_t>(port);
    }

    /// The error, if it cannot be opened.
    std::error_code open() {
        std::error_code error;
        opened = store::open_redis_store(world.view(), options, error, detail);
        return error;
    }

    /// Sends without waiting.
    std::shared_ptr<std::optional<store::answers>> send(std::vector<core::verb> what,
                                                        core::nanoseconds patience = 20s) {
        std::vector<core::entry> batch;
        for (auto& one : what) {
            batch.push_back({std::move(one), world.now() + patience});
        }
        auto told = std::make_shared<std::optional<store::answers>>();
        opened->execute(store::lane::others, std::move(batch), [told](store::answers given) {
            EXPECT_FALSE(told->has_value()) << "answered twice";
            *told = std::move(given);
        });
        return told;
    }
    store::answers wait_for(const std::shared_ptr<std::optional<store::answers>>& told) {
        EXPECT_TRUE(world.run_until([&] { return told->has_value(); })) << "no answer";
        return told->value_or(store::answers(300));
    }
    core::answer ask(core::verb what, core::nanoseconds patience = 20s) {
        std::vector<core::verb> one;
        one.push_back(std::move(what));
        return wait_for(send(std::move(one), patience)).front();
    }
    /// Until it is executed: while the connection is made anew, entries are surely refused.
    core::answer insist(const core::verb& what) {
        core::answer given;
        EXPECT_TRUE(eventually([&] {
            given = ask(what);
            return given.took == effect::yes;
        })) << given.detail;
        return given;
    }

    pumped_environment world;
    store::redis_options options;
    std::string detail;
    std::unique_ptr<store::store> opened;
};

}  // namespace dibs::testing
