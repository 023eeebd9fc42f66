// SPDX-License-Identifier: Apache-2.0
// Programs of Node.js around the command: a provider of OpenID that others wrote, whose refresh tokens may be used once,
// and the examples with Express and node-cron.

#include "peer_process.hpp"
#include "support.hpp"
#include "support/places.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <list>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace dibs::testing {
namespace {

using json = nlohmann::json;

bool is_required() {
    const char* wish = std::getenv("DIBS_INTEROP");
    return wish != nullptr && std::string_view{wish} == "required";
}

/// A program of Node.js whose packages may be missing.
class Node : public ::testing::Test {
  protected:
    void SetUp() override {
        ::setenv("DIBS", tests::places::command, 1);
        ::setenv("DIBS_STORE", here.store().c_str(), 1);
        ::setenv("CHARGES", here.file("charges").c_str(), 1);
    }
    /// Empty: it cannot run here.
    std::unique_ptr<peer_process> start(const std::string& script,
                                        const std::vector<std::string>& words,
                                        const std::string& begins) {
        std::vector<std::string> command{DIBS_NODE, script};
        command.insert(command.end(), words.begin(), words.end());
        auto made = std::make_unique<peer_process>(command, tests::places::node_modules);
        told = made->hear();
        if (told.starts_with(begins)) {
            return made;
        }
        if (is_required()) {
            ADD_FAILURE() << script << ": " << told;
        }
        return nullptr;
    }

    const folder here;
    std::string told;  ///< the first line
};

class Provider : public Node {
  protected:
    void SetUp() override {
        Node::SetUp();
        provider = start(std::string{tests::places::peers} + "/oidc_provider.js", {}, "ready ");
        if (!provider) {
            GTEST_SKIP() << "oidc-provider cannot run here, scripts/test installs it: " << told;
        }
        std::istringstream words{told};
        std::string ready;
        words >> ready >> port >> first;
    }
    [[nodiscard]] launch token(const std::vector<std::string>& words) const {
        std::vector<std::string> all{"token"};
        all.insert(all.end(), words.begin(), words.end());
        all.insert(all.end(),
                   {"--rotating",
                    "-o",
                    "json",
                    "crm",
                    "--",
                    DIBS_NODE,
                    std::string{tests::places::peers} + "/fetch_token.js",
                    port,
                    first});
        return dibs_on(here, all);
    }
    /// All at once; the token that all of them got.
    json all_get(const std::vector<std::string>& words) {
        std::list<process> all;
        for (int at = 0; at < 6; ++at) {
            all.emplace_back(token(words));
        }
        json got;
        std::set<std::string> tokens;
        for (auto& one : all) {
            const auto ended = one.wait();
            EXPECT_EQ(ended.status, 0) << ended.err;
            got = json::parse(ended.out, nullptr, false);
            tokens.insert(got.value("value", ended.out));
        }
        EXPECT_EQ(tokens.size(), 1U);
        return got;
    }
    json stats() { return json::parse(provider->ask("stats")); }

    std::unique_ptr<peer_process> provider;
    std::string port;
    std::string first;
};

}  // namespace

TEST_F(Provider, RotatesForManyProcessesAndNeverSeesARefreshTokenTwice) {
    auto now = all_get({"get"});
    EXPECT_EQ(provider->ask("valid " + now.value("value", "")), "200");
    EXPECT_EQ(stats()["grant.success"], 1);
    constexpr int rounds = 3;
    std::set<std::string> seen{now.value("value", "")};
    for (int round = 0; round < rounds; ++round) {
        const auto fence = std::to_string(now["fence"].get<std::uint64_t>());
        now = all_get({"get", "--seen", fence});
        EXPECT_EQ(provider->ask("valid " + now.value("value", "")), "200");
        seen.insert(now.value("value", ""));
    }
    EXPECT_EQ(seen.size(), 1U + rounds);
    auto counted = stats();
    EXPECT_EQ(counted["grant.success"], 1 + rounds);
    EXPECT_EQ(counted["refresh_token.consumed"], 1 + rounds);
    EXPECT_EQ(counted["grant.revoked"], 0);
    EXPECT_EQ(counted["grant.error"], 0);

    // That the provider would have noticed: a refresh token that was used revokes all.
    EXPECT_EQ(provider->ask("redeem " + first), "invalid_grant");
    EXPECT_EQ(stats()["grant.revoked"], 1);
    EXPECT_NE(provider->ask("valid " + now.value("value", "")), "200");
    const auto refused =
        process(token({"get", "--seen", std::to_string(now["fence"].get<std::uint64_t>())})).wait();
    EXPECT_EQ(refused.status, 77) << refused.out;
    EXPECT_NE(refused.err.find("invalid_grant"), std::string::npos) << refused.err;
}

TEST_F(Node, AnExpressHandlerAnswersARepetitionAsTheFirstTime) {
    const auto server =
        start(std::string{tests::places::source_folder} + "/examples/node/express.js",
              {"0"},
              "listening on ");
    if (!server) {
        GTEST_SKIP() << "express cannot run here, scripts/test installs it: " << told;
    }
    const auto port = told.substr(told.rfind(' ') + 1);
    const auto client = start(std::string{tests::places::peers} + "/post.js",
                              {"http://127.0.0.1:" + port + "/payments"},
                              "ready");
    ASSERT_TRUE(client) << told;
    const auto post = [&](const std::string& key, const std::string& body) {
        return json::parse(client->ask(json{{"key", key}, {"body", body}}.dump()));
    };
    // Several at once, then once more.
    const auto all = post("order-1", R"({"amount":5})");
    const auto again = post("order-1", R"({"amount":5})");
    ASSERT_EQ(all["answers"].size(), 4U);
    for (const auto& one : all["answers"]) {
        EXPECT_EQ(one["status"], 200) << one;
        EXPECT_EQ(one["text"], again["answers"][0]["text"]);
    }
    EXPECT_EQ(json::parse(again["answers"][0]["text"].get<std::string>())["paid"], 5);
    for (const auto& one : post("order-1", R"({"amount":6})")["answers"]) {
        EXPECT_EQ(one["status"], 422) << one;
    }
    EXPECT_EQ(post("", R"({"amount":6})")["answers"][0]["status"], 400);
    EXPECT_EQ(post("order-2", R"({"amount":7})")["answers"][0]["status"], 200);
    EXPECT_EQ(read_file(here.file("charges")), "payments/order-1 5\npayments/order-2 7\n");
}

TEST_F(Node, OfThreeServersThatPlanAJobWithNodeCronOneRunsIt) {
    std::vector<std::unique_ptr<peer_process>> servers;
    for (int at = 0; at < 3; ++at) {
        servers.push_back(
            start(std::string{tests::places::source_folder} + "/examples/node/cron.js",
                  {"*/2 * * * * *"},
                  "planned"));
        if (!servers.back()) {
            GTEST_SKIP() << "node-cron cannot run here, scripts/test installs it: " << told;
        }
    }
    const auto decided = [&] {
        const auto ended = run_dibs(here, {"runs", "nightly", "--json"});
        const auto all = json::parse(ended.out, nullptr, false);
        return ended.status == 0 && all.is_array() ? all.size() : 0;
    };
    ASSERT_TRUE(eventually([&] { return decided() >= 4; }));
    for (auto& one : servers) {
        one->kill();
    }
    std::multiset<std::string> runs;
    for (auto& one : servers) {
        for (auto line = one->hear(); line != "(ended)"; line = one->hear()) {
            if (line.starts_with("run ")) {
                runs.insert(line);
            }
        }
    }
    // What was decided last may not have been begun when its server was stopped.
    EXPECT_GE(runs.size(), 1U);
    for (const auto& one : runs) {
        EXPECT_EQ(runs.count(one), 1U) << one;
    }
}

}  // namespace dibs::testing
