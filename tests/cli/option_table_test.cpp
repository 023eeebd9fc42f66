// SPDX-License-Identifier: Apache-2.0
// Where the options end and the command of others begins.
#include "cli/options/option_table.hpp"

#include "cli/output/failure.hpp"
#include "cli/run/run_options.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace dibs::cli {
namespace {

using list = std::vector<std::string>;

arguments parse(const list& words) {
    return parse_arguments(run_syntax(), words);
}

TEST(OptionTable, StopsAtTheFirstOperandAfterTheKey) {
    const auto found = parse({"k", "sh", "-c", "exit 3", "--ttl", "5s"});
    EXPECT_EQ(found.operands, list{"k"});
    EXPECT_EQ(found.command, (list{"sh", "-c", "exit 3", "--ttl", "5s"}));
    EXPECT_FALSE(found.has("ttl"));
}

TEST(OptionTable, TakesOptionsOnBothSidesOfTheKey) {
    const auto found = parse({"--ttl", "5s", "k", "--wait=2s", "-v", "cmd", "-v"});
    EXPECT_EQ(*found.value("ttl"), "5s");
    EXPECT_EQ(*found.value("wait"), "2s");
    EXPECT_EQ(found.count("verbose"), 1U);
    EXPECT_EQ(found.command, (list{"cmd", "-v"}));
}

TEST(OptionTable, TakesADoubleDashBeforeTheCommandAndKeepsTheCommandsOwn) {
    EXPECT_EQ(parse({"k", "--", "cmd", "--", "x"}).command, (list{"cmd", "--", "x"}));
    EXPECT_EQ(parse({"k", "cmd", "--", "x"}).command, (list{"cmd", "--", "x"}));
}

TEST(OptionTable, AcceptsAKeyThatBeginsWithADash) {
    const auto dashes = parse({"--", "-k", "--", "cmd", "--ttl"});
    EXPECT_EQ(dashes.operands, list{"-k"});
    EXPECT_EQ(dashes.command, (list{"cmd", "--ttl"}));
    const auto shorter = parse({"--", "--help", "cmd"});
    EXPECT_EQ(shorter.operands, list{"--help"});
    EXPECT_EQ(shorter.command, list{"cmd"});
    const auto named = parse({"--key=--help", "cmd", "x"});
    EXPECT_EQ(*named.value("key"), "--help");
    EXPECT_TRUE(named.operands.empty());
    EXPECT_EQ(named.command, (list{"cmd", "x"}));
}

TEST(OptionTable, KnowsLettersAloneTogetherAndWithValues) {
    const auto found = parse({"-vw5s", "-E", "0", "k", "c"});
    EXPECT_TRUE(found.has("verbose"));
    EXPECT_EQ(*found.value("wait"), "5s");
    EXPECT_TRUE(parse({"-q", "k", "c"}).has("quiet"));
    EXPECT_EQ(*found.value("wait"), "5s");
    EXPECT_EQ(*found.value("held-code"), "0");
}

TEST(OptionTable, RefusesWhatItDoesNotKnow) {
    for (const auto& words : std::vector<list>{{"--tll", "5s", "k", "c"},
                                               {"-x", "k", "c"},
                                               {"k", "--what", "c"},
                                               {"k", "--ttl"},
                                               {"--ver", "k", "c"},
                                               {"--tt=5s", "k", "c"},
                                               {"--=x", "k", "c"},
                                               {"-vx", "k", "c"},
                                               {"-:", "k", "c"},
                                               {"-E"},
                                               {"--no-renew=yes", "k", "c"}}) {
        EXPECT_THROW((void)parse(words), usage_error) << words.front();
    }
}

TEST(OptionTable, NamesWhatItRefuses) {
    const std::pair<list, const char*> bad[] = {
        {{"--he", "k", "c"}, "unknown option --he; see dibs run --help"},
        {{"--stat=x", "k", "c"}, "unknown option --stat; see dibs run --help"},
        {{"-vx", "k", "c"}, "unknown option -x; see dibs run --help"},
        {{"k", "--ttl"}, "--ttl needs a value (DURATION)"},
        {{"k", "-E"}, "--held-code needs a value (N)"},
        {{"--no-renew=1", "k", "c"}, "--no-renew takes no value"}};
    for (const auto& [words, said] : bad) {
        try {
            (void)parse(words);
            ADD_FAILURE() << said;
        } catch (const usage_error& fault) {
            EXPECT_STREQ(fault.what(), said);
        }
    }
}

TEST(OptionTable, TakesADoubleDashAsAValueAndALoneDashAsAnOperand) {
    const auto value = parse({"-w", "--", "k", "c", "--"});
    EXPECT_EQ(*value.value("wait"), "--");
    EXPECT_EQ(value.operands, list{"k"});
    EXPECT_EQ(value.command, (list{"c", "--"}));
    const auto lone = parse({"-", "-", "x"});
    EXPECT_EQ(lone.operands, list{"-"});
    EXPECT_EQ(lone.command, (list{"-", "x"}));
    EXPECT_EQ(*parse({"--wait=", "k", "c"}).value("wait"), "");
}

TEST(OptionTable, HelpNamesEveryOption) {
    const auto text = help_text(run_syntax());
    for (const auto& shown : run_syntax().options) {
        EXPECT_NE(text.find("--" + std::string(shown.name)), std::string::npos) << shown.name;
    }
}

// --- run's own rules -----------------------------------------------------------------------------

run_options check(const list& words, const file_settings& file = {}) {
    return check_run_options(parse(words), file);
}

TEST(RunOptions, HaveTheDocumentedDefaults) {
    const auto options = check({"k", "c"});
    EXPECT_EQ(options.ttl, std::chrono::seconds{30});
    EXPECT_EQ(options.grace, std::chrono::seconds{5});
    EXPECT_EQ(options.wait, std::chrono::milliseconds{0});
    EXPECT_EQ(options.held_code, 75);
    EXPECT_TRUE(options.renew);
    EXPECT_EQ(options.renew_every, std::chrono::seconds{10});
}

TEST(RunOptions, LeaveRoomForTwoRenewalsBeforeTheStop) {
    for (const char* ttl : {"1s", "2s", "5s", "30s", "10m", "24h"}) {
        const auto longest = check({"--ttl", ttl, "k", "c"}).ttl / 3;
        for (const auto& grace : {std::string("0s"), std::to_string(longest.count()) + "ms"}) {
            const auto options = check({"--ttl", ttl, "--grace", grace, "k", "c"});
            EXPECT_GT(options.renew_every.count(), 0) << ttl << " " << grace;
            const auto stop = options.ttl * 99 / 100 - std::chrono::milliseconds{2} -
                              options.grace - std::chrono::milliseconds{250};
            EXPECT_LE(2 * options.renew_every, stop) << ttl << " " << grace;
        }
    }
}

TEST(RunOptions, RefuseBadValuesAndNameTheOption) {
    const std::pair<list, const char*> bad[] = {{{"--ttl", "0s"}, "ttl"},
                                                {{"--ttl", "-1s"}, "ttl"},
                                                {{"--ttl", "1ms"}, "ttl"},
                                                {{"--ttl", "3650d"}, "ttl"},
                                                {{"--ttl", "30"}, "ttl"},
                                                {{"--wait", "-1"}, "wait"},
                                                {{"--wait", "never"}, "wait"},
                                                {{"--grace", "11s"}, "grace"},
                                                {{"--max-hold", "0s"}, "max-hold"},
                                                {{"--max-runtime", "x"}, "max-runtime"},
                                                {{"--held-code", "256"}, "held-code"},
                                                {{"--held-code", "600"}, "held-code"},
                                                {{"--held-code", "-1"}, "held-code"},
                                                {{"--held-code", "abc"}, "held-code"},
                                                {{"--held-code", ""}, "held-code"},
                                                {{"--status-file", ""}, "status-file"},
                                                {{"--key", "a"}, "key"}};
    for (const auto& [option, name] : bad) {
        auto words = option;
        words.insert(words.end(), {"k", "c"});
        if (std::string(name) == "key") {
            words = {"k", "--key", "a", "c"};
        }
        try {
            (void)check(words);
            ADD_FAILURE() << option[0] << " " << option[1];
        } catch (const usage_error& fault) {
            EXPECT_NE(std::string(fault.what()).find(name), std::string::npos) << fault.what();
        }
    }
    EXPECT_EQ(check({"--held-code", "0", "k", "c"}).held_code, 0);
    EXPECT_EQ(check({"--held-code", "255", "k", "c"}).held_code, 255);
}

TEST(RunOptions, RefuseBadKeysAndAMissingCommand) {
    for (const auto& words : std::vector<list>{{},
                                               {"k"},
                                               {"", "c"},
                                               {"   ", "c"},
                                               {"a\nb", "c"},
                                               {"a\tb", "c"},
                                               {"\xFF", "c"},
                                               {std::string(1'025, 'k'), "c"},
                                               {"--key=", "c"}}) {
        EXPECT_THROW((void)check(words), usage_error);
    }
    for (const char* key : {"$(x)", "'", "\"", "%", "a b", "ключ", "a/b:c*"}) {
        EXPECT_EQ(check({key, "c"}).key, key);
    }
}

TEST(RunOptions, TakeFromTheFileWhatNoFlagSays) {
    file_settings file;
    file.path = "dibs.toml";
    file.ttl = std::chrono::seconds{60};
    file.held_code = 0;
    EXPECT_EQ(check({"k", "c"}, file).ttl, std::chrono::seconds{60});
    EXPECT_EQ(check({"k", "c"}, file).held_code, 0);
    EXPECT_EQ(check({"--ttl", "5s", "-E", "9", "k", "c"}, file).ttl, std::chrono::seconds{5});
    file.ttl = std::chrono::milliseconds{1};
    EXPECT_THROW((void)check({"k", "c"}, file), configuration_error);
}

}  // namespace
}  // namespace dibs::cli
