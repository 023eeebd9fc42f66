// SPDX-License-Identifier: Apache-2.0
// What is shown of a command line to others never holds a secret.

#include "client/host/this_process.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

namespace dibs::detail {

TEST(ThisProcess, SecretsOfACommandAreBlanked) {
    const std::pair<std::string, std::string> cases[] = {
        {"app --password hunter2 -v", "app --password *** -v"},
        {"app --password=hunter2 -v", "app --password=*** -v"},
        {"app --password  hunter2", "app --password  ***"},
        {"PGPASSWORD=hunter2 psql -h db", "PGPASSWORD=*** psql -h db"},
        {"app --api-key 123 --verbose", "app --api-key *** --verbose"},
        {"app --client-secret 123", "app --client-secret ***"},
        {"app ACCESS_TOKEN=abc=def x", "app ACCESS_TOKEN=*** x"},
        {"app redis://user:hunter2@host:6379/0", "app redis://user:***@host:6379/0"},
        {"app --store=postgres://user:p@ss@host/db", "app --store=postgres://user:***@host/db"},
        {"app a://x:1@h b://y:2@h", "app a://x:***@h b://y:***@h"},
        {"app redis://host?password=hunter2", "app redis://host?password=***"},
        {"app --no-token --verbose", "app --no-token --verbose"},
    };
    for (const auto& [command, shown] : cases) {
        EXPECT_EQ(blanked(command), shown);
    }
}

TEST(ThisProcess, WhatIsNoSecretStays) {
    for (const std::string command : {"",
                                      "app",
                                      "app  two blanks ",
                                      "app --key=value http://host:80/a@b",
                                      "rsync a b --delete",
                                      "app mailto:someone@host"}) {
        EXPECT_EQ(blanked(command), command);
    }
}

TEST(ThisProcess, ASecretWithBlanksIsBlankedWhole) {
    using words = std::vector<std::string>;
    EXPECT_EQ(blanked(words{"app", "--password", "correct horse", "-v"}), "app --password *** -v");
    EXPECT_EQ(blanked(words{"app", "--password=correct horse"}), "app --password=***");
    EXPECT_EQ(blanked(words{"app", "redis://u:pass word@host"}), "app redis://u:***@host");
}

TEST(ThisProcess, TellsItself) {
    const auto told = this_process("job --token abc");
    EXPECT_EQ(told.pid, ::getpid());
    EXPECT_EQ(told.command, "job --token ***");
    EXPECT_FALSE(told.host.empty());
    EXPECT_FALSE(told.user.empty());
    EXPECT_NE(this_process("").command.find("dibs_client_tests"), std::string::npos);
}

TEST(ThisProcess, ALongCommandIsCutBetweenCharacters) {
    for (std::size_t lead = 0; lead < 4; ++lead) {
        std::string command(lead, 'x');
        while (command.size() < 1000) {
            command += "\xF0\x9F\x94\x92";
        }
        const auto shown = this_process(command).command;
        EXPECT_LE(shown.size(), 310U);
        ASSERT_TRUE(shown.ends_with("…"));
        const auto kept = shown.substr(0, shown.size() - std::string_view("…").size());
        EXPECT_EQ((kept.size() - lead) % 4, 0U) << "no part of a character";
    }
}

}  // namespace dibs::detail
