// SPDX-License-Identifier: Apache-2.0
// Several at once on the command line: permits, readers beside a writer, and several keys, all or none.

#include "support.hpp"
#include "support/places.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <signal.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace dibs::testing {

namespace {

using nlohmann::json;
using words = std::vector<std::string>;

class Permits : public ::testing::Test {
  protected:
    /// A command that says `ready` and stays until it is told to end.
    std::unique_ptr<process> start(words options) {
        words all{"run"};
        all.insert(all.end(), options.begin(), options.end());
        for (const auto* word : {"sh", "-c", "echo ready; exec sleep 300"}) {
            all.emplace_back(word);
        }
        auto made = std::make_unique<process>(dibs_on(here, all));
        EXPECT_TRUE(eventually([&] { return made->out() == "ready\n"; })) << made->err();
        return made;
    }
    static void stop(std::unique_ptr<process> which) {
        which->signal(SIGTERM);
        (void)which->wait();
    }
    json shown(const std::string& key) const {
        return json::parse(run_dibs(here, {"show", key, "--json"}).out);
    }
    outcome run(words all) const { return run_dibs(here, std::move(all)); }

    const folder here;
};

}  // namespace

TEST_F(Permits, SoManyRunAtATimeAndNoMore) {
    auto first = start({"--permits", "2", "k"});
    auto second = start({"--permits", "2", "k"});
    const auto third = run({"run", "-v", "--permits", "2", "k", "true"});
    EXPECT_EQ(third.status, 75);
    EXPECT_NE(third.err.find("and by 1 more"), std::string::npos) << third.err;
    const auto record = shown("k");
    EXPECT_EQ(record["capacity"], 2);
    ASSERT_EQ(record["holders"].size(), 2U);
    EXPECT_EQ(record["holders"][0]["weight"], 1);
    EXPECT_NE(run({"ls"}).out.find("1 of 2 permits"), std::string::npos);
    EXPECT_NE(run({"show", "k"}).out.find("permits     2 of 2 taken"), std::string::npos);
    stop(std::move(first));
    EXPECT_EQ(run({"run", "--permits", "2", "k", "true"}).status, 0);
    stop(std::move(second));
}

TEST_F(Permits, AHeavyCommandTakesMoreThanOne) {
    auto heavy = start({"--permits", "3", "--take", "2", "k"});
    EXPECT_EQ(run({"run", "--permits", "3", "--take", "2", "k", "true"}).status, 75);
    EXPECT_EQ(run({"run", "--permits", "3", "k", "true"}).status, 0);
    EXPECT_EQ(shown("k")["holders"][0]["weight"], 2);
    stop(std::move(heavy));
}

TEST_F(Permits, ReadersRunTogetherAndAWriterAlone) {
    auto first = start({"--shared", "k"});
    auto second = start({"--shared", "k"});
    EXPECT_EQ(run({"run", "k", "true"}).status, 75);
    EXPECT_TRUE(shown("k")["capacity"].is_null());
    EXPECT_NE(run({"show", "k"}).out.find("by 2 readers"), std::string::npos);
    stop(std::move(first));
    stop(std::move(second));
    auto writer = start({"k"});
    EXPECT_EQ(run({"run", "--shared", "k", "true"}).status, 75);
    EXPECT_EQ(run({"ls"}).out.find("SHARE"), std::string::npos) << "nothing is shared any more";
    stop(std::move(writer));
}

TEST_F(Permits, AWriterInTheQueueStopsLaterReaders) {
    auto reader = start({"--shared", "k"});
    process writer(
        dibs_on(here, {"run", "--queue", "--wait", "5m", "k", "sh", "-c", "echo writer >> order"}));
    ASSERT_TRUE(eventually([&] { return shown("k")["queued"] == 1; })) << writer.err();
    process later(dibs_on(
        here,
        {"run", "--shared", "--queue", "--wait", "5m", "k", "sh", "-c", "echo reader >> order"}));
    ASSERT_TRUE(eventually([&] { return shown("k")["queued"] == 2; })) << later.err();
    EXPECT_EQ(shown("k")["holders"].size(), 1U) << "though it would fit in beside the reader";
    stop(std::move(reader));
    EXPECT_EQ(writer.wait().status, 0);
    EXPECT_EQ(later.wait().status, 0);
    EXPECT_EQ(read_file(here.file("order")), "writer\nreader\n");
}

TEST_F(Permits, AnotherNumberIsRefusedWithBoth) {
    auto holder = start({"--permits", "3", "licences"});
    const auto refused = run({"run", "--wait", "5m", "--permits", "5", "licences", "true"});
    EXPECT_EQ(refused.status, 78) << "it does not wait for what will not change";
    for (const auto* part : {"licences", "3 permits", "5 permits", "not started"}) {
        EXPECT_NE(refused.err.find(part), std::string::npos) << refused.err;
    }
    stop(std::move(holder));
}

TEST_F(Permits, NonsenseIsRefusedByName) {
    const struct {
        words options;
        std::string named;
    } cases[] = {
        {{"--permits", "0"}, "--permits 0"},
        {{"--permits", "x"}, "--permits x"},
        {{"--permits", "-1"}, "--permits -1"},
        {{"--permits", "4294967295"}, "--permits 4294967295"},
        {{"--permits", "3", "--take", "4"}, "--take 4"},
        {{"--take", "2"}, "--take needs --permits"},
        {{"--shared", "--permits", "2"}, "contradict"},
        {{"--also", ""}, "--also"},
    };
    for (const auto& one : cases) {
        words all{"run"};
        all.insert(all.end(), one.options.begin(), one.options.end());
        all.insert(all.end(), {"k", "touch", "ran"});
        const auto refused = run(all);
        EXPECT_EQ(refused.status, 64) << refused.err;
        EXPECT_NE(refused.err.find(one.named), std::string::npos) << refused.err;
    }
    EXPECT_FALSE(exists(here.file("ran")));
}

TEST_F(Permits, AHandleMayBeAPermit) {
    const auto first = run({"acquire", "--permits", "2", "k"});
    ASSERT_EQ(first.status, 0) << first.err;
    ASSERT_EQ(run({"acquire", "--permits", "2", "k"}).status, 0);
    EXPECT_EQ(run({"acquire", "--permits", "2", "k"}).status, 75);
    const auto handle = first.out.substr(0, first.out.size() - 1);
    EXPECT_EQ(run({"renew", handle}).status, 0);
    EXPECT_EQ(run({"release", handle}).status, 0);
    EXPECT_EQ(run({"acquire", "--permits", "2", "k"}).status, 0);
}

TEST_F(Permits, SeveralKeysAreHeldTogetherEachWithItsFence) {
    const auto told = run({"run",
                           "b",
                           "--also",
                           "a",
                           "--also",
                           "c",
                           "--also",
                           "a",
                           "sh",
                           "-c",
                           "echo $DIBS_KEY $DIBS_KEY_2 $DIBS_KEY_3 $DIBS_KEY_4.; "
                           "echo $DIBS_FENCE; echo $DIBS_FENCE_2; echo $DIBS_FENCE_3"});
    ASSERT_EQ(told.status, 0) << told.err;
    EXPECT_EQ(told.out.substr(0, told.out.find('\n')), "b a c .");
    std::string fences = told.out.substr(told.out.find('\n') + 1);
    for (const auto* key : {"b", "a", "c"}) {
        const auto record = shown(key);
        EXPECT_TRUE(record["holders"].empty()) << "given back";
        const auto line = fences.substr(0, fences.find('\n'));
        EXPECT_EQ(line, std::to_string(record["fence"].get<std::uint64_t>()));
        fences.erase(0, line.size() + 1);
    }
}

TEST_F(Permits, OneThatIsHeldLeavesNothingOfTheOthers) {
    auto holder = start({"b"});
    const auto refused = run({"run", "-v", "a", "--also", "b", "--also", "c", "touch", "ran"});
    EXPECT_EQ(refused.status, 75);
    EXPECT_NE(refused.err.find("\"b\" is held by"), std::string::npos) << refused.err;
    EXPECT_FALSE(exists(here.file("ran")));
    for (const auto* key : {"a", "c"}) {
        EXPECT_TRUE(shown(key)["holders"].empty()) << key;
    }
    stop(std::move(holder));
}

TEST_F(Permits, CommandsThatNameThemInOppositeOrdersAllRun) {
    std::vector<std::unique_ptr<process>> all;
    for (int number = 0; number < 8; ++number) {
        const words keys = number % 2 == 0 ? words{"a", "--also", "b"} : words{"b", "--also", "a"};
        words line{"run", "--wait", "5m"};
        line.insert(line.end(), keys.begin(), keys.end());
        line.insert(line.end(), {"sh", "-c", "mkdir inside && rmdir inside && echo ran >> log"});
        all.push_back(std::make_unique<process>(dibs_on(here, line)));
    }
    std::string expected;
    for (const auto& one : all) {
        const auto ended = one->wait();
        EXPECT_EQ(ended.status, 0) << ended.err;
        expected += "ran\n";
    }
    EXPECT_EQ(read_file(here.file("log")), expected);
}

TEST_F(Permits, TheLossOfAFurtherKeyStopsTheCommand) {
    words line{"run",
               "--ttl",
               "2s",
               "--grace",
               "100ms",
               "--status-file",
               "report",
               "a",
               "--also",
               "b",
               "sh",
               "-c",
               "echo ready; exec sleep 300"};
    process runs(dibs_on(here, line));
    ASSERT_TRUE(eventually([&] { return runs.out() == "ready\n"; })) << runs.err();
    const auto fence = shown("b")["holders"][0]["fence"].get<std::uint64_t>();
    ASSERT_EQ(run({"break", "b", "--fence", std::to_string(fence), "--yes"}).status, 0);
    const auto ended = runs.wait();
    EXPECT_EQ(ended.status, 79) << ended.err;
    EXPECT_NE(ended.err.find("the lease on \"b\" (fence " + std::to_string(fence)),
              std::string::npos)
        << ended.err;
    const auto report = json::parse(read_file(here.file("report")));
    EXPECT_EQ(report["key"], "a");
    ASSERT_EQ(report["also"].size(), 1U);
    EXPECT_EQ(report["also"][0]["key"], "b");
    EXPECT_EQ(report["also"][0]["fence"], fence);
    EXPECT_TRUE(shown("a")["holders"].empty());
}

TEST_F(Permits, WhatTheParentHoldsIsNotWaitedForAmongSeveral) {
    const auto told = run({"run",
                           "b",
                           "sh",
                           "-c",
                           "exec \"$0\" run --wait 5m a --also b true",
                           std::string(tests::places::command)});
    EXPECT_EQ(told.status, 75) << told.err;
    EXPECT_NE(told.err.find("already held by the parent"), std::string::npos) << told.err;
}

}  // namespace dibs::testing
