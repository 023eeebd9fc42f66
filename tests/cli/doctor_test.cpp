// SPDX-License-Identifier: Apache-2.0
// dibs doctor and config: what they say, and that they notice what they should.
#include "support.hpp"

#include <dibs/dibs.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <list>
#include <string>

namespace dibs::testing {
namespace {

using json = nlohmann::json;

json findings(const folder& here) {
    return json::parse(run_dibs(here, {"doctor", "--json"}).out);
}

json about(const json& all, const std::string& subject) {
    for (const auto& one : all) {
        if (one["subject"] == subject) {
            return one;
        }
    }
    return nullptr;
}

TEST(Doctor, FindsNothingWrongWithAHealthyStore) {
    const folder here;
    ASSERT_EQ(run_dibs(here, {"acquire", "k"}).status, 0);
    const auto ended = run_dibs(here, {"doctor"});
    EXPECT_EQ(ended.status, 0) << ended.out;
    EXPECT_EQ(ended.out.find("problem "), std::string::npos) << ended.out;
    const auto all = findings(here);
    for (const char* subject : {"store",
                                "scope",
                                "file system",
                                "free space",
                                "file",
                                "folder",
                                "log",
                                "log index",
                                "holders folder",
                                "schema",
                                "integrity",
                                "journal mode",
                                "synchronous",
                                "records",
                                "processes",
                                "waiting",
                                "clock",
                                "boot",
                                "time namespace"}) {
        EXPECT_TRUE(about(all, subject).is_object()) << subject << " in " << all;
    }
    EXPECT_EQ(about(all, "journal mode")["what"], "wal");
    EXPECT_EQ(about(all, "records")["what"], "1, and 0 waiters");
    EXPECT_NE(about(all, "scope")["what"].get<std::string>().find("this host"), std::string::npos);
}

TEST(Doctor, SeesThatEverybodyMayWrite) {
    const folder here;
    ASSERT_EQ(run_dibs(here, {"acquire", "k"}).status, 0);
    ASSERT_EQ(::chmod(here.file("locks.db").c_str(), 0666), 0);
    EXPECT_EQ(run_dibs(here, {"doctor"}).status, 1);
    const auto file = about(findings(here), "file");
    EXPECT_EQ(file["state"], "problem");
    EXPECT_NE(file["advice"], "");
}

TEST(Doctor, SeesAFileInPlaceOfTheHoldersFolder) {
    const folder here;
    ASSERT_EQ(run_dibs(here, {"acquire", "k"}).status, 0);
    std::filesystem::remove_all(here.file("locks.db.holders"));
    write_file(here.file("locks.db.holders"), "text");
    const auto text = run_dibs(here, {"doctor"});
    EXPECT_EQ(text.status, 1) << text.out;
    EXPECT_NE(text.out.find("problem  holders folder"), std::string::npos) << text.out;
    EXPECT_NE(text.out.find("-> "), std::string::npos) << text.out;
    EXPECT_EQ(about(findings(here), "holders folder")["state"], "problem");
    EXPECT_EQ(run_dibs(here, {"run", "k", "true"}).status, 78);
}

TEST(Doctor, SeesTheDead) {
    const folder here;
    process worker(dibs_on(here, {"run", "k", "sleep", "300"}));
    ASSERT_TRUE(eventually(
        [&] { return run_dibs(here, {"ls"}).out.find("sleep 300") != std::string::npos; }));
    EXPECT_EQ(about(findings(here), "processes")["state"], "ok");
    const auto pid = std::to_string(worker.id());
    worker.signal(SIGKILL);
    worker.wait();
    // Its guard ends the command; then nobody holds its descriptor any more.
    EXPECT_TRUE(eventually([&] {
        const auto found = about(findings(here), "processes");
        return found["state"] == "warning" &&
               found["what"].get<std::string>().find("pid " + pid) != std::string::npos;
    })) << findings(here);
}

TEST(Doctor, SeesAKeyThatManyWaitFor) {
    const folder here;
    client through{here.store()};
    auto held = through.acquire("one-for-all");
    ASSERT_TRUE(held);
    EXPECT_EQ(about(findings(here), "waiting")["state"], "ok");
    std::list<process> all;
    for (int at = 0; at < 10; ++at) {
        all.emplace_back(
            dibs_on(here, {"run", "one-for-all", "--wait", "1m", "--queue", "--", "true"}));
    }
    ASSERT_TRUE(eventually([&] { return through.inspect("one-for-all")->queued == 10; }));
    const auto found = about(findings(here), "waiting");
    EXPECT_EQ(found["state"], "warning");
    const auto what = found["what"].get<std::string>();
    EXPECT_NE(what.find("one-for-all"), std::string::npos) << what;
    EXPECT_NE(what.find("10 wait"), std::string::npos) << what;
    EXPECT_NE(what.find("the first of them for"), std::string::npos) << what;
    EXPECT_EQ(run_dibs(here, {"doctor"}).status, 0);
    held.reset();
    for (auto& one : all) {
        EXPECT_EQ(one.wait().status, 0);
    }
}

TEST(Doctor, SeesAFenceAheadOfTheClock) {
    const folder here;
    ASSERT_EQ(run_dibs(here, {"acquire", "k"}).status, 0);
    EXPECT_EQ(about(findings(here), "clock")["state"], "ok");
    // A fence from the year 2100, as after a clock that was ahead for a while.
    dibs::client through{here.store()};
    dibs::acquire_options wanted;
    wanted.fence_floor = 4'102'444'800'000'000;
    const auto held = through.try_acquire("l", wanted);
    ASSERT_TRUE(held);
    EXPECT_EQ(about(findings(here), "clock")["state"], "warning");
}

TEST(Doctor, TellsWhyAStoreCannotBeOpened) {
    const folder here;
    write_file(here.file("locks.db"), std::string(8192, 'x'));
    const auto ended = run_dibs(here, {"doctor"});
    EXPECT_EQ(ended.status, 1) << ended.out;
    EXPECT_NE(ended.out.find("locks.db"), std::string::npos) << ended.out;
    EXPECT_EQ(about(findings(here), "store")["state"], "problem");
    EXPECT_EQ(run_dibs(here, {"doctor", "--store", "memory:"}).status, 1);
}

TEST(Config, TellsWhereEachSettingComesFrom) {
    const folder here;
    auto how = dibs_on(here, {"config", "show", "--json"});
    how.variables.erase("DIBS_STORE");
    how.variables["HOME"] = here.path();
    const auto origin = [&](const char* name) {
        const auto ended = process(how).wait();
        EXPECT_EQ(ended.status, 0) << ended.err;
        for (const auto& one : json::parse(ended.out)) {
            if (one["name"] == name) {
                return one["origin"].get<std::string>() + " " + one["place"].get<std::string>();
            }
        }
        return std::string("not told");
    };
    EXPECT_EQ(origin("store"), "default ");
    EXPECT_EQ(origin("ttl"), "default ");
    write_file(here.file("dibs.toml"), "store = \"sqlite:/x/file.db\"\nttl = \"7s\"\n");
    EXPECT_EQ(origin("store"), "file dibs.toml");
    EXPECT_EQ(origin("ttl"), "file dibs.toml");
    EXPECT_EQ(origin("held_code"), "default ");
    auto as_text = how;
    as_text.words.pop_back();
    const auto text = process(as_text).wait().out;
    EXPECT_NE(text.find("ttl         7s "), std::string::npos) << text;
    how.variables["DIBS_STORE"] = here.store();
    EXPECT_EQ(origin("store"), "environment DIBS_STORE");
    how.words.insert(how.words.end(), {"--store", "sqlite:/x/flag.db"});
    EXPECT_EQ(origin("store"), "flag --store");
    EXPECT_FALSE(exists(here.file(".local"))) << "a look made the default store";
}

TEST(Config, BlanksSecretsAndRefusesUnknownKeys) {
    const folder here;
    const auto shown = run_dibs(here, {"config", "show", "--store", "redis://user:hunter2@host/0"});
    EXPECT_EQ(shown.status, 0) << shown.err;
    EXPECT_EQ(shown.out.find("hunter2"), std::string::npos) << shown.out;
    EXPECT_NE(shown.out.find("redis://"), std::string::npos) << shown.out;
    write_file(here.file("dibs.toml"), "ttl = \"7s\"\nttll = \"8s\"\n");
    const auto refused = run_dibs(here, {"config", "show"});
    EXPECT_EQ(refused.status, 78);
    EXPECT_NE(refused.err.find("ttll"), std::string::npos) << refused.err;
    EXPECT_NE(refused.err.find("2"), std::string::npos) << refused.err;
    EXPECT_EQ(run_dibs(here, {"config"}).status, 64);
    EXPECT_EQ(run_dibs(here, {"config", "set"}).status, 64);
}

}  // namespace
}  // namespace dibs::testing
