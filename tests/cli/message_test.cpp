// SPDX-License-Identifier: Apache-2.0
// Goal: bad input of every command is told in one clear line that names the option, the value as it
// was given and the limits, and no line tells a secret. Method: tables of command lines.
#include "support.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace dibs::testing {
namespace {

using words = std::vector<std::string>;

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

std::string shown(const words& all) {
    std::string text;
    for (const auto& word : all) {
        text += word + " ";
    }
    return text;
}

void expect_one_line(const outcome& found, const words& given) {
    EXPECT_EQ(found.out, "") << shown(given);
    EXPECT_TRUE(found.err.starts_with("dibs: ")) << shown(given) << found.err;
    EXPECT_EQ(std::count(found.err.begin(), found.err.end(), '\n'), 1) << shown(given) << found.err;
}

TEST(Messages, OfADurationNameTheOptionTheValueAndWhatIsRight) {
    const folder here;
    struct duration_option {
        words command;
        std::string option;
        words behind;
    };
    const std::vector<duration_option> options{
        {{"run"}, "wait", {"k", "true"}},
        {{"run"}, "ttl", {"k", "true"}},
        {{"run"}, "grace", {"k", "true"}},
        {{"run"}, "max-hold", {"k", "true"}},
        {{"run"}, "max-runtime", {"k", "true"}},
        {{"elect"}, "wait", {"k", "true"}},
        {{"once", "--every", "day"}, "wait", {"k", "true"}},
        {{"once", "--every", "day"}, "ttl", {"k", "true"}},
        {{"once", "--every", "day"}, "skew", {"k", "true"}},
        {{"once", "--every", "day"}, "backoff", {"k", "true"}},
        {{"once", "--every", "day"}, "keep", {"k", "true"}},
        {{"acquire"}, "wait", {"k"}},
        {{"acquire"}, "ttl", {"k"}},
        {{"renew"}, "ttl", {"dibs1:" + std::string(32, 'a') + ":7:k"}},
        {{"hold", "--reason", "x"}, "for", {"k"}},
        {{"watch"}, "every", {}},
    };
    for (const auto& one : options) {
        for (const std::string value : {"", "x", "5", "-1s", "1.5ms", "40000d", "5 s"}) {
            auto given = one.command;
            given.push_back("--" + one.option);
            given.push_back(value);
            given.insert(given.end(), one.behind.begin(), one.behind.end());
            const auto found = run_dibs(here, given);
            EXPECT_EQ(found.status, 64) << shown(given) << found.err;
            expect_one_line(found, given);
            const bool quoted = value.empty() || contains(value, " ");
            EXPECT_TRUE(contains(
                found.err, "--" + one.option + " " + (quoted ? "\"" + value + "\"" : value) + ": "))
                << shown(given) << found.err;
        }
    }
    EXPECT_FALSE(exists(here.file("locks.db"))) << "a store was made for it";
}

TEST(Messages, OfATtlOutsideOfTheLimitsTellThem) {
    const folder here;
    ASSERT_EQ(run_dibs(here, {"run", "k", "true"}).status, 0);
    const auto handle = "dibs1:" + std::string(32, 'a') + ":7:k";
    for (const auto& given : std::vector<words>{{"run", "--ttl", "1ms", "k", "true"},
                                                {"run", "--ttl", "3650d", "k", "true"},
                                                {"elect", "--ttl", "0s", "k", "true"},
                                                {"once", "--slot", "x", "--ttl", "0s", "k", "true"},
                                                {"acquire", "--ttl", "1ms", "k"},
                                                {"acquire", "--ttl", "3650d", "k"},
                                                {"renew", "--ttl", "1ms", handle},
                                                {"renew", "--ttl", "3650d", handle}}) {
        const auto found = run_dibs(here, given);
        EXPECT_EQ(found.status, 64) << shown(given) << found.err;
        expect_one_line(found, given);
        const auto value = *(std::find(given.begin(), given.end(), "--ttl") + 1);
        EXPECT_TRUE(contains(found.err, "--ttl " + value + ": ")) << found.err;
        EXPECT_TRUE(contains(found.err, "must be from ")) << found.err;
        EXPECT_FALSE(contains(found.err, handle)) << found.err;
    }
    write_file(here.file("dibs.toml"), "ttl = \"1ms\"\n");
    const auto by_file = run_dibs(here, {"acquire", "k"});
    EXPECT_EQ(by_file.status, 78) << by_file.err;
    EXPECT_TRUE(contains(by_file.err, "dibs.toml: ttl must be from ")) << by_file.err;
}

TEST(Messages, OfContradictionsNameBoth) {
    const folder here;
    struct pair {
        words given;
        std::string one;
        std::string other;
    };
    for (const auto& [given, one, other] : std::vector<pair>{
             {{"run", "-q", "-v", "k", "true"}, "--quiet", "--verbose"},
             {{"elect", "-qv", "k", "true"}, "--quiet", "--verbose"},
             {{"acquire", "-v", "-q", "k"}, "--quiet", "--verbose"},
             {{"once", "-q", "-v", "--slot", "x", "j", "true"}, "--quiet", "--verbose"},
             {{"once", "--dry-run", "--condition", "--slot", "x", "j"}, "--dry-run", "--condition"},
             {{"once", "--every", "day", "--slot", "x", "j", "true"}, "--every", "--slot"},
             {{"once", "--every", "day", "--cron", "@daily", "j", "true"}, "--every", "--cron"},
             {{"once", "--slot", "x", "--at-most-once", "--retries", "1", "j", "true"},
              "--at-most-once",
              "--retries"},
             {{"run", "--status-file", "f", "--status-fd", "1", "k", "true"},
              "--status-file",
              "--status-fd"},
             {{"show", "--key", "k", "l"}, "--key", "l"},
             {{"hold", "k", "--lift", "--for", "1h"}, "--lift", "--for"},
             {{"hold", "k", "--lift", "--reason", "x"}, "--lift", "--reason"},
             {{"release", "x", "--handle-file", "f"}, "operand", "--handle-file"},
             {{"demo", "failover", "--store", "sqlite:x"}, "--store", "failover"},
             {{"demo", "fencing", "--store", "memory:"}, "--store", "memory:"},
             {{"demo", "duplicate-jobs", "--fast"}, "--fast", "duplicate-jobs"}}) {
        const auto found = run_dibs(here, given);
        EXPECT_EQ(found.status, 64) << shown(given) << found.err;
        expect_one_line(found, given);
        EXPECT_TRUE(contains(found.err, one)) << found.err;
        EXPECT_TRUE(contains(found.err, other)) << found.err;
    }
    EXPECT_EQ(run_dibs(here, {"run", "-qv", "--help"}).status, 0);
    EXPECT_FALSE(exists(here.file("locks.db")));
}

TEST(Messages, OfBadKeysAreOneLine) {
    const folder here;
    const words keys{"", std::string(1025, 'k'), "k\xff", "k\x1b[31m", "  "};
    for (const auto& key : keys) {
        for (const auto& given : std::vector<words>{{"run", key, "true"},
                                                    {"elect", key, "true"},
                                                    {"once", "--slot", "x", key, "true"},
                                                    {"runs", key},
                                                    {"acquire", key},
                                                    {"show", key},
                                                    {"check", "--fence", "1", key},
                                                    {"hold", "--lift", key},
                                                    {"break", "--yes", "--fence", "1", key}}) {
            const auto found = run_dibs(here, given);
            EXPECT_EQ(found.status, 64) << shown(given) << found.err;
            expect_one_line(found, given);
            EXPECT_FALSE(contains(found.err, "\x1b")) << found.err;
        }
    }
}

TEST(Messages, TellNoHandle) {
    const folder here;
    const auto handle = "dibs1:" + std::string(32, 'a') + ":7:k";
    write_file(here.file("two"), handle + " " + handle + "\n");
    write_file(here.file("lines"), handle + "\n" + handle + "\n");
    for (const auto& given : std::vector<words>{{"release", handle, handle},
                                                {"release", handle + " " + handle},
                                                {"renew", handle + " " + handle},
                                                {"renew", "--handle-file", here.file("two")},
                                                {"release", "--handle-file", here.file("lines")},
                                                {"renew", "x" + handle},
                                                {"renew", "--ttl", handle, handle},
                                                {"show", handle},
                                                {"acquire", handle},
                                                {"run", handle, "true"},
                                                {"elect", handle, "true"},
                                                {"once", "--slot", "x", handle, "true"},
                                                {"ls", handle, handle},
                                                {handle}}) {
        const auto found = run_dibs(here, given);
        EXPECT_EQ(found.status, 64) << found.err;
        expect_one_line(found, given);
        EXPECT_FALSE(contains(found.err, std::string(32, 'a'))) << found.err;
    }
}

TEST(Messages, OfACommandThatCannotBeExecutedTellThatTheKeyIsFree) {
    const folder here;
    write_file(here.file("plain"), "text");
    for (const auto& [command, status] :
         {std::pair{here.file("plain"), 126}, std::pair{here.file("missing"), 127}}) {
        for (const words& start : {words{"run", "the key"},
                                   words{"once", "--slot", std::to_string(status), "the key"}}) {
            auto given = start;
            given.push_back(command);
            const auto found = run_dibs(here, given);
            EXPECT_EQ(found.status, status) << found.err;
            expect_one_line(found, given);
            EXPECT_TRUE(contains(found.err, "\"the key")) << found.err;
            EXPECT_TRUE(contains(found.err, command)) << found.err;
            EXPECT_TRUE(contains(found.err, "the key was given back")) << found.err;
        }
    }
}

TEST(Messages, CarryTheZoneOfTheirTimes) {
    const folder here;
    const auto taken = run_dibs(here, {"acquire", "k"});
    ASSERT_EQ(taken.status, 0) << taken.err;
    auto how = dibs_on(here, {"run", "-v", "k", "true"});
    how.variables["TZ"] = "XYZ-3";
    const auto refused = process(how).wait();
    EXPECT_EQ(refused.status, 75);
    EXPECT_TRUE(contains(refused.err, " XYZ (")) << refused.err;
}

}  // namespace
}  // namespace dibs::testing
