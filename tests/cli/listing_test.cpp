// SPDX-License-Identifier: Apache-2.0
// dibs ls, version and the help texts.
#include "support.hpp"

#include <dibs/version.hpp>

#include <gtest/gtest.h>

#include <csignal>
#include <regex>
#include <string>

namespace dibs::testing {
namespace {

TEST(Listing, ShowsWhoHoldsWhat) {
    const folder here;
    ASSERT_EQ(run_dibs(here, {"run", "other", "true"}).status, 0);
    EXPECT_EQ(run_dibs(here, {"ls"}).out, "");
    EXPECT_EQ(run_dibs(here, {"ls", "--json"}).out, "[]\n");
    process holder(
        dibs_on(here, {"run", "invoice:1", "sh", "-c", "echo $DIBS_FENCE; exec sleep 300"}));
    ASSERT_TRUE(eventually([&] { return !holder.out().empty(); })) << holder.err();
    const auto fence = holder.out().substr(0, holder.out().size() - 1);
    ASSERT_EQ(run_dibs(here, {"run", "other", "true"}).status, 0);

    const auto table = run_dibs(here, {"ls"}).out;
    for (const auto& part : {std::string("KEY"),
                             std::string("invoice:1"),
                             ":" + std::to_string(holder.id()),
                             fence,
                             std::string("sleep 300")}) {
        EXPECT_NE(table.find(part), std::string::npos) << part << " in " << table;
    }
    EXPECT_EQ(table.find("other"), std::string::npos) << table;
    const auto json = run_dibs(here, {"ls", "invoice:", "--json"}).out;
    for (const auto& part : {std::string("\"key\": \"invoice:1\""),
                             "\"pid\": " + std::to_string(holder.id()),
                             "\"fence\": " + fence}) {
        EXPECT_NE(json.find(part), std::string::npos) << part << " in " << json;
    }
    EXPECT_EQ(run_dibs(here, {"ls", "nothing:"}).out, "");
    // Never granted: no fence.
    ASSERT_EQ(run_dibs(here, {"hold", "new", "--for", "1h", "--reason", "x"}).status, 0);
    EXPECT_TRUE(std::regex_search(run_dibs(here, {"ls", "new"}).out,
                                  std::regex("new +\\(on hold\\) +- +- +59 min \\d+ s +- +0")))
        << run_dibs(here, {"ls", "new"}).out;
    ASSERT_EQ(run_dibs(here, {"hold", "new", "--lift"}).status, 0);
    holder.signal(SIGTERM);
    holder.wait();
    EXPECT_EQ(run_dibs(here, {"ls"}).out, "");
}

TEST(Listing, VersionIsTheReleases) {
    const folder here;
    EXPECT_EQ(run_dibs(here, {"version"}).out, "dibs " DIBS_VERSION_STRING "\n");
    EXPECT_EQ(run_dibs(here, {"--version"}).out, "dibs " DIBS_VERSION_STRING "\n");
    EXPECT_NE(
        run_dibs(here, {"version", "--json"}).out.find("\"version\": \"" DIBS_VERSION_STRING "\""),
        std::string::npos);
}

TEST(Listing, EveryCommandExplainsItselfWithExamples) {
    const folder here;
    for (const char* command : {"run", "ls", "version", "demo"}) {
        for (const char* flag : {"-h", "--help"}) {
            const auto found = run_dibs(here, {command, flag});
            EXPECT_EQ(found.status, 0);
            EXPECT_NE(found.out.find("usage: dibs " + std::string(command)), std::string::npos)
                << found.out;
            EXPECT_NE(found.out.find("examples:"), std::string::npos) << found.out;
        }
    }
    EXPECT_EQ(run_dibs(here, {"--help"}).status, 0);
    EXPECT_EQ(run_dibs(here, {}).status, 64);
}

}  // namespace
}  // namespace dibs::testing
