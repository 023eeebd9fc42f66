// SPDX-License-Identifier: Apache-2.0
// dibs acquire, renew and release: a lease as a handle that a script keeps.
#include "support.hpp"
#include "support/places.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>
#include <string>
#include <vector>

namespace dibs::testing {
namespace {

using json = nlohmann::json;

std::string without_newline(std::string text) {
    if (!text.empty() && text.back() == '\n') {
        text.pop_back();
    }
    return text;
}

/// What `dibs ls --json` says of the holders of the only key.
json holders(const folder& here) {
    const auto listed = json::parse(run_dibs(here, {"ls", "--json"}).out);
    return listed.empty() ? json::array() : listed[0]["holders"];
}

std::string acquire(const folder& here, const std::string& key) {
    const auto taken = run_dibs(here, {"acquire", key});
    EXPECT_EQ(taken.status, 0) << taken.err;
    EXPECT_EQ(taken.err, "");
    return without_newline(taken.out);
}

TEST(Handle, OutlivesTheProcessThatTookItAndIsGivenBack) {
    const folder here;
    const auto handle = acquire(here, "deploy");
    EXPECT_TRUE(handle.starts_with("dibs1:")) << handle;
    ASSERT_EQ(holders(here).size(), 1U);
    EXPECT_EQ(holders(here)[0]["attached"], false);
    EXPECT_EQ(run_dibs(here, {"run", "deploy", "true"}).status, 75);
    EXPECT_EQ(run_dibs(here, {"acquire", "deploy", "--held-code", "3"}).status, 3);

    const auto released = run_dibs(here, {"release", handle});
    EXPECT_EQ(released.status, 0) << released.err;
    EXPECT_EQ(released.out + released.err, "");
    EXPECT_EQ(run_dibs(here, {"run", "deploy", "true"}).status, 0);

    const auto again = run_dibs(here, {"release", handle});
    EXPECT_EQ(again.status, 79);
    EXPECT_NE(again.err.find("deploy"), std::string::npos) << again.err;
    EXPECT_EQ(again.err.find(handle), std::string::npos) << "the secret is told: " << again.err;
}

TEST(Handle, StaysGoodOverRenewals) {
    const folder here;
    const auto handle = acquire(here, "deploy");
    for (const char* ttl : {"2h", "3h", "4h"}) {
        const auto renewed = run_dibs(here, {"renew", handle, "--ttl", ttl});
        EXPECT_EQ(renewed.status, 0) << renewed.err;
        EXPECT_EQ(renewed.out, "");
    }
    EXPECT_GT(holders(here).at(0)["remaining_ms"], 3 * 3'600'000);
    const auto told = json::parse(run_dibs(here, {"renew", handle, "--ttl", "1h", "--json"}).out);
    EXPECT_EQ(told["key"], "deploy");
    EXPECT_EQ(told["fence"], holders(here).at(0)["fence"]);
    EXPECT_GT(told["expires_in_ms"], 3'000'000);
    EXPECT_LE(told["expires_in_ms"], 3'600'000);
    EXPECT_EQ(run_dibs(here, {"release", handle}).status, 0);
}

TEST(Handle, JsonTellsTheFenceAndHowLong) {
    const folder here;
    const auto taken = run_dibs(here, {"acquire", "deploy", "--ttl", "1m", "--json"});
    ASSERT_EQ(taken.status, 0) << taken.err;
    const auto told = json::parse(taken.out);
    EXPECT_EQ(told["key"], "deploy");
    EXPECT_EQ(told["fence"], holders(here).at(0)["fence"]);
    EXPECT_GT(told["expires_in_ms"], 0);
    EXPECT_LE(told["expires_in_ms"], 60'000);
    EXPECT_EQ(run_dibs(here, {"release", told["handle"].get<std::string>()}).status, 0);
}

TEST(Handle, ComesFromStdinAFileOrTheEnvironment) {
    const folder here;
    for (const bool as_json : {false, true}) {
        auto words = std::vector<std::string>{"acquire", "deploy"};
        if (as_json) {
            words.emplace_back("--json");
        }
        const auto printed = run_dibs(here, words).out;
        write_file(here.file("handle"), printed);

        auto from_stdin = dibs_on(here, {"renew", "-"});
        from_stdin.input = here.file("handle");
        EXPECT_EQ(process(from_stdin).wait().status, 0);
        EXPECT_EQ(run_dibs(here, {"renew", "--handle-file", here.file("handle")}).status, 0);
        auto from_variable = dibs_on(here, {"release"});
        from_variable.variables["DIBS_HANDLE"] = without_newline(printed);
        EXPECT_EQ(process(from_variable).wait().status, 0);
        EXPECT_TRUE(holders(here).empty());
    }
}

TEST(Handle, OfALeaseThatIsLostSaysSo) {
    const folder here;
    const auto taken = run_dibs(here, {"acquire", "deploy", "--ttl", "50ms"});
    const auto handle = without_newline(taken.out);
    ASSERT_TRUE(eventually([&] { return holders(here).empty(); }));
    for (const char* verb : {"renew", "release"}) {
        const auto late = run_dibs(here, {verb, handle});
        EXPECT_EQ(late.status, 79) << verb;
        EXPECT_NE(late.err.find("deploy"), std::string::npos) << late.err;
    }
    // Somebody else's lease is not touched by it.
    const auto next = acquire(here, "deploy");
    EXPECT_EQ(run_dibs(here, {"release", handle}).status, 79);
    EXPECT_EQ(run_dibs(here, {"renew", handle}).status, 79);
    EXPECT_EQ(holders(here).size(), 1U);
    // A made-up holder id neither.
    const auto made_up = "dibs1:" + std::string(32, 'a') + next.substr(next.find(':', 6));
    EXPECT_EQ(run_dibs(here, {"release", made_up}).status, 79);
    EXPECT_EQ(holders(here).size(), 1U);
}

TEST(Handle, ThatIsNoneIsRefused) {
    const folder here;
    write_file(here.file("empty"), "");
    EXPECT_EQ(run_dibs(here, {"renew", "nonsense"}).status, 64);
    EXPECT_EQ(run_dibs(here, {"release"}).status, 64);
    EXPECT_EQ(run_dibs(here, {"release", ""}).status, 64);
    EXPECT_EQ(run_dibs(here, {"release", "--handle-file", here.file("empty")}).status, 64);
    EXPECT_EQ(run_dibs(here, {"release", "--handle-file", here.file("missing")}).status, 78);
    const auto folder_named = run_dibs(here, {"release", "--handle-file", here.file("")});
    EXPECT_EQ(folder_named.status, 78);
    EXPECT_NE(folder_named.err.find("directory"), std::string::npos) << folder_named.err;
    EXPECT_EQ(run_dibs(here, {"release", "x", "--handle-file", here.file("empty")}).status, 64);
}

TEST(Handle, ThatNobodyCanReadIsGivenBack) {
    const folder here;
    auto how = dibs_on(here, {"-c", "\"$0\" acquire deploy > /dev/full; echo $?"});
    how.words.emplace_back(tests::places::command);
    how.program = "/bin/sh";
    const auto ended = process(how).wait();
    EXPECT_EQ(ended.out, "74\n") << ended.err;
    EXPECT_TRUE(holders(here).empty());
}

TEST(Handle, WaitingEndsWithTheSignal) {
    const folder here;
    const auto handle = acquire(here, "deploy");
    process waiting(dibs_on(here, {"acquire", "deploy", "--wait", "forever"}));
    ASSERT_TRUE(eventually([&] {
        return json::parse(run_dibs(here, {"ls", "--json"}).out)[0]["waiters"] == 1;
    }));
    waiting.signal(SIGTERM);
    const auto ended = waiting.wait();
    EXPECT_EQ(ended.status, 128 + SIGTERM);
    EXPECT_EQ(ended.out, "");
    EXPECT_EQ(run_dibs(here, {"release", handle}).status, 0);
    EXPECT_TRUE(holders(here).empty());
}

TEST(Handle, WaitingIsRewarded) {
    const folder here;
    const auto handle = acquire(here, "deploy");
    process waiting(dibs_on(here, {"acquire", "deploy", "--wait", "forever"}));
    ASSERT_TRUE(eventually([&] {
        return json::parse(run_dibs(here, {"ls", "--json"}).out)[0]["waiters"] == 1;
    }));
    ASSERT_EQ(run_dibs(here, {"release", handle}).status, 0);
    const auto ended = waiting.wait();
    EXPECT_EQ(ended.status, 0) << ended.err;
    EXPECT_EQ(run_dibs(here, {"release", without_newline(ended.out)}).status, 0);
}

TEST(Handle, BadTermsTakeNothing) {
    const folder here;
    for (const auto& words :
         std::vector<std::vector<std::string>>{{"acquire"},
                                               {"acquire", ""},
                                               {"acquire", std::string(1025, 'k')},
                                               {"acquire", "k\xff"},
                                               {"acquire", "k\n"},
                                               {"acquire", "k", "l"},
                                               {"acquire", "k", "--ttl", "0s"},
                                               {"acquire", "k", "--ttl", "1ms"},
                                               {"acquire", "k", "--ttl", "3650d"},
                                               {"acquire", "k", "--ttl", "30"},
                                               {"acquire", "k", "--wait", "-1s"},
                                               {"acquire", "k", "--held-code", "256"},
                                               {"acquire", "k", "--nonsense"}}) {
        const auto refused = run_dibs(here, words);
        EXPECT_EQ(refused.status, 64) << words.back() << ": " << refused.err;
        EXPECT_EQ(refused.out, "");
        EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
    }
    EXPECT_EQ(run_dibs(here, {"ls", "--all", "--json"}).out, "[]\n");
    EXPECT_EQ(run_dibs(here, {"--store", "memory:", "acquire", "k"}).status, 78);
    EXPECT_EQ(run_dibs(here, {"--store", "sqlite:/", "acquire", "k"}).status, 78);
}

}  // namespace
}  // namespace dibs::testing
