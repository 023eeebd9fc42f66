// SPDX-License-Identifier: Apache-2.0
#pragma once
// One process' view of a real PostgreSQL server, and the verbs said to it.

#include "store/postgres/postgres_store.hpp"
#include "support/postgres_server.hpp"
#include "support/pumped_environment.hpp"
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

class postgres_peer {
  public:
    explicit postgres_peer(std::string url, std::uint64_t seed = 1)
        : world{seed}, url_{std::move(url)} {}

    /// The error, if it cannot be opened.
    std::error_code open() {
        detail.clear();
        auto where = store::postgres::parse_address(url_, detail);
        if (!where) {
            return errc::invalid_url;
        }
        store::postgres_options options;
        options.where = std::move(*where);
        options.who.host = "here";
        std::error_code error;
        opened = store::open_postgres_store(world.view(), std::move(options), error, detail);
        return error;
    }

    using told = std::shared_ptr<std::optional<store::answers>>;

    /// Sends without waiting.
    told send(std::vector<core::verb> what,
              core::nanoseconds patience = 20s,
              store::lane which = store::lane::others) {
        std::vector<core::entry> batch;
        for (auto& one : what) {
            batch.push_back({std::move(one), world.now() + patience});
        }
        auto heard = std::make_shared<std::optional<store::answers>>();
        opened->execute(which, std::move(batch), [heard](store::answers given) {
            EXPECT_FALSE(heard->has_value()) << "answered twice";
            *heard = std::move(given);
        });
        return heard;
    }
    told send(core::verb what, core::nanoseconds patience = 20s) {
        std::vector<core::verb> one;
        one.push_back(std::move(what));
        return send(std::move(one), patience);
    }
    store::answers wait_for(const told& heard) {
        EXPECT_TRUE(world.run_until([&] { return heard->has_value(); })) << "no answer";
        return heard->value_or(store::answers(300));
    }
    core::answer ask(core::verb what, core::nanoseconds patience = 20s) {
        return wait_for(send(std::move(what), patience)).front();
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

    /// Nothing of this peer is under way any more, also nothing that it does for itself.
    void settle() {
        std::optional<core::page> shown;
        opened->list("", "", 1, [&](core::page page) { shown = std::move(page); });
        EXPECT_TRUE(world.run_until([&] { return shown.has_value(); })) << "no listing";
    }

    pumped_environment world;
    std::string detail;
    std::unique_ptr<store::store> opened;

  private:
    std::string url_;
};

}  // namespace dibs::testing
