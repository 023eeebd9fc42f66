// SPDX-License-Identifier: Apache-2.0
// Which setting counts, and what a wrong file is told. Secrets and the child's environment too.
#include "cli/settings/settings.hpp"

#include "cli/output/failure.hpp"
#include "cli/output/redact.hpp"
#include "cli/run/child_environment.hpp"
#include "support.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace dibs::cli {
namespace {

surroundings outside(std::map<std::string, std::string> variables, bool root = false) {
    surroundings where;
    where.variable = [variables](const char* name) -> std::optional<std::string> {
        const auto found = variables.find(name);
        return found == variables.end() ? std::nullopt : std::optional(found->second);
    };
    where.root = root;
    return where;
}

TEST(Settings, FlagBeatsEnvironmentBeatsFileBeatsDefault) {
    const auto where = outside({{"DIBS_STORE", "sqlite:/env"}, {"HOME", "/users/a"}});
    const auto bare = outside({{"HOME", "/users/a"}});
    file_settings file;
    file.store = "sqlite:/file";
    const std::string flag = "sqlite:/flag";
    EXPECT_EQ(choose_store(&flag, file, where).url, "sqlite:/flag");
    EXPECT_EQ(choose_store(nullptr, file, where).url, "sqlite:/env");
    EXPECT_EQ(choose_store(nullptr, file, bare).url, "sqlite:/file");
    const auto chosen = choose_store(nullptr, {}, bare);
    EXPECT_EQ(chosen.url, "sqlite:/users/a/.local/state/dibs/locks.db");
    EXPECT_EQ(chosen.from, store_choice::source::built_in);
}

TEST(Settings, AnEmptyVariableOrFlagIsNoDefault) {
    const std::string empty;
    EXPECT_THROW((void)choose_store(&empty, {}, outside({})), usage_error);
    EXPECT_THROW((void)choose_store(nullptr, {}, outside({{"DIBS_STORE", ""}})),
                 configuration_error);
}

TEST(Settings, TheDefaultPlaceFollowsTheRules) {
    EXPECT_EQ(default_store_path(outside({{"XDG_STATE_HOME", "/s"}, {"HOME", "/h"}})),
              "/s/dibs/locks.db");
    EXPECT_EQ(default_store_path(outside({{"XDG_STATE_HOME", "relative"}, {"HOME", "/h"}})),
              "/h/.local/state/dibs/locks.db");
    // A cron job of root's has no XDG variables; a shell may. They must meet.
    EXPECT_EQ(default_store_path(outside({{"XDG_STATE_HOME", "/s"}}, true)),
              "/var/lib/dibs/locks.db");
    EXPECT_THROW((void)default_store_path(outside({})), configuration_error);
}

TEST(Settings, TheDefaultFolderIsForItsUserAlone) {
    const testing::folder where;
    const auto path = where.file("state/dibs/locks.db");
    EXPECT_TRUE(prepare_default_store(path));
    struct stat facts {};
    ASSERT_EQ(::stat(where.file("state/dibs").c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777U, 0700U);
    testing::write_file(path, "x");
    EXPECT_FALSE(prepare_default_store(path));
}

TEST(Settings, OddPathsStayPathsInTheUrl) {
    const auto chosen = choose_store(nullptr, {}, outside({{"HOME", "/h/50%?#x"}}));
    EXPECT_EQ(chosen.url, "sqlite:/h/50%25%3F%23x/.local/state/dibs/locks.db");
}

TEST(Settings, AFileIsReadWithItsUnits) {
    const testing::folder where;
    testing::write_file(where.file("c.toml"),
                        "store = \"sqlite:/x\"\nttl = \"1.5m\"\ngrace = \"2s\"\nheld_code = 0\n");
    const auto file = read_settings_file(where.file("c.toml"));
    EXPECT_EQ(file.store, "sqlite:/x");
    EXPECT_EQ(file.ttl, std::chrono::seconds{90});
    EXPECT_EQ(file.grace, std::chrono::seconds{2});
    EXPECT_EQ(file.held_code, 0);
}

TEST(Settings, AWrongFileIsRefusedWithFileAndLine) {
    const testing::folder where;
    const std::pair<const char*, const char*> wrong[] = {
        {"store = \"sqlite:/x\"\nstroe = \"y\"\n", ":2: unknown key: stroe"},
        {"\n\nstore = \n", ":3: "},
        {"store = 5\n", ":1: store"},
        {"store = \"\"\n", ":1: store"},
        {"\nttl = 30\n", ":2: ttl"},
        {"ttl = \"30\"\n", ":1: ttl"},
        {"held_code = 256\n", ":1: held_code"},
        {"[store]\nurl = 1\n", ":1: store"},
    };
    for (const auto& [text, message] : wrong) {
        testing::write_file(where.file("c.toml"), text);
        try {
            (void)read_settings_file(where.file("c.toml"));
            ADD_FAILURE() << text;
        } catch (const configuration_error& fault) {
            EXPECT_NE(std::string(fault.what()).find(where.file("c.toml") + message),
                      std::string::npos)
                << fault.what();
        }
    }
}

TEST(Settings, FilesAreLookedForInOrder) {
    EXPECT_EQ(
        settings_files(outside({{"XDG_CONFIG_HOME", "/c"}, {"HOME", "/h"}})),
        (std::vector<std::string>{"dibs.toml", "/c/dibs/config.toml", "/etc/dibs/config.toml"}));
    EXPECT_EQ(settings_files(outside({{"HOME", "/h"}})),
              (std::vector<std::string>{
                  "dibs.toml", "/h/.config/dibs/config.toml", "/etc/dibs/config.toml"}));
}

TEST(Redact, BlanksPasswordsInUrls) {
    EXPECT_EQ(redact_url("redis://u:a/b@h"), "redis://u:***@h");
    EXPECT_EQ(redact_url("redis:u:geheim@h"), "redis:u:***@h");
    EXPECT_EQ(redact_url("host=x password=geheim"), "***");
    EXPECT_EQ(redact_url("sqlite:/a@b.db?synchronous=full&foo=geheim"),
              "sqlite:/a@b.db?synchronous=full&foo=***");
    EXPECT_EQ(redact_url("redis://user:geheim@h:6379/0"), "redis://user:***@h:6379/0");
    EXPECT_EQ(redact_url("redis://:p@ss@h/0"), "redis://:***@h/0");
    EXPECT_EQ(redact_url("postgres://u@h/db?password=x&sslmode=require"),
              "postgres://u@h/db?password=***&sslmode=require");
    for (const char* plain :
         {"sqlite:/a/b.db", "redis://h:6379/0", "postgres://user@h/0", "memory:"}) {
        EXPECT_FALSE(has_secret(plain)) << plain;
    }
    EXPECT_TRUE(has_secret("redis://u:p@h"));
}

TEST(Redact, BlanksSecretsOnCommandLines) {
    const std::vector<std::string> words{"curl",
                                         "--token",
                                         "abc",
                                         "--password=x y",
                                         "API_KEY=z",
                                         "redis://u:p@h/0",
                                         "two words",
                                         "--verbose"};
    EXPECT_EQ(
        redact_command(words),
        "curl --token *** --password=*** API_KEY=*** redis://u:***@h/0 'two words' --verbose");
}

std::vector<std::string> named(const std::vector<std::string>& all, const std::string& name) {
    std::vector<std::string> found;
    std::copy_if(all.begin(), all.end(), std::back_inserter(found), [&](const std::string& entry) {
        return entry.starts_with(name + "=");
    });
    return found;
}

TEST(ChildEnvironment, OverwritesEveryNameOfOurs) {
    const std::vector<std::string> inherited{"PATH=/bin",
                                             "DIBS_KEY=outer",
                                             "DIBS_FENCE=1",
                                             "DIBS_TTL_MS=1",
                                             "DIBS_DEADLINE_BOOTTIME_NS=1",
                                             "DIBS_RUN_ID=outer",
                                             "DIBS_STORE=sqlite:/outer",
                                             "DIBS_HELD_KEYS=1 outer"};
    lease_facts facts;
    facts.key = "k=v";
    facts.fence = 7;
    facts.ttl = std::chrono::seconds{30};
    facts.deadline_boottime_ns = 42;
    facts.run_id = "id";
    facts.store.url = "sqlite:/mine";
    facts.store.from = store_choice::source::flag;
    const auto child = child_environment(inherited, facts);
    using list = std::vector<std::string>;
    EXPECT_EQ(named(child, "PATH"), list{"PATH=/bin"});
    EXPECT_EQ(named(child, "DIBS_KEY"), list{"DIBS_KEY=k=v"});
    EXPECT_EQ(named(child, "DIBS_FENCE"), list{"DIBS_FENCE=7"});
    EXPECT_EQ(named(child, "DIBS_TTL_MS"), list{"DIBS_TTL_MS=30000"});
    EXPECT_EQ(named(child, "DIBS_DEADLINE_BOOTTIME_NS"), list{"DIBS_DEADLINE_BOOTTIME_NS=42"});
    EXPECT_EQ(named(child, "DIBS_RUN_ID"), list{"DIBS_RUN_ID=id"});
    EXPECT_EQ(named(child, "DIBS_STORE"), list{"DIBS_STORE=sqlite:/mine"});
    EXPECT_EQ(named(child, "DIBS_HELD_KEYS"), list{"DIBS_HELD_KEYS=7 k=v\n1 outer"});

    // A secret is not put there, and another store's URL does not stay either.
    facts.store.url = "redis://u:p@h/0";
    EXPECT_TRUE(named(child_environment(inherited, facts), "DIBS_STORE").empty());
    // What came from there is the caller's own.
    facts.store.from = store_choice::source::environment;
    EXPECT_EQ(named(child_environment(inherited, facts), "DIBS_STORE"),
              list{"DIBS_STORE=sqlite:/outer"});
}

TEST(ChildEnvironment, TellsWhichLeaseIsAnOuterOne) {
    const std::string outer = "7 k\n1 a key with blanks";
    EXPECT_TRUE(named_by_outer_run(outer, "k"));
    EXPECT_TRUE(held_by_outer_run(outer, "k", 7));
    EXPECT_FALSE(held_by_outer_run(outer, "k", 8));
    EXPECT_TRUE(held_by_outer_run(outer, "a key with blanks", 1));
    EXPECT_FALSE(named_by_outer_run(outer, "a"));
    for (const char* broken : {"", "k", "7", "x k", "\n\n", " k"}) {
        EXPECT_FALSE(named_by_outer_run(broken, "k")) << broken;
    }
}

TEST(ChildEnvironment, RunIdsDiffer) {
    EXPECT_EQ(new_run_id().size(), 32U);
    EXPECT_NE(new_run_id(), new_run_id());
}

}  // namespace
}  // namespace dibs::cli
