// SPDX-License-Identifier: Apache-2.0
// dibs token: processes that share one token, and a provider that counts.
#include "support.hpp"
#include "support/places.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <list>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace dibs::testing {
namespace {

using json = nlohmann::json;

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

/// A command that fetches: each call is one line of `presented`, with the credential that it got.
class Token : public ::testing::Test {
  protected:
    void SetUp() override { answer(R"(echo "{\"access_token\":\"t$n\",\"expires_in\":3600}")"); }

    /// What the provider does; $n is the number of the fetch.
    void answer(const std::string& script) const {
        write_file(fetch,
                   "#!/bin/sh\ncredential=$(cat)\necho \"$credential\" >>" +
                       here.file("presented") + "\nn=$(wc -l <" + here.file("presented") + ")\n" +
                       script + "\n");
        ::chmod(fetch.c_str(), 0755);
    }
    [[nodiscard]] std::vector<std::string> presented() const {
        std::vector<std::string> lines;
        if (!exists(here.file("presented"))) {
            return lines;
        }
        std::string line;
        for (const char one : read_file(here.file("presented"))) {
            if (one == '\n') {
                lines.push_back(std::exchange(line, {}));
            } else {
                line += one;
            }
        }
        return lines;
    }
    [[nodiscard]] std::vector<std::string> words(const std::string& action,
                                                 const std::vector<std::string>& more = {}) const {
        std::vector<std::string> all{"token", action};
        all.insert(all.end(), more.begin(), more.end());
        all.insert(all.end(), {"crm", "--", fetch});
        return all;
    }
    [[nodiscard]] outcome get(const std::vector<std::string>& more = {}) const {
        return run_dibs(here, words("get", more));
    }

    const folder here;
    const std::string fetch = here.file("fetch");
};

TEST_F(Token, ManyProcessesShareOne) {
    answer(R"(sleep 0.3; echo "{\"access_token\":\"t$n\",\"expires_in\":3600}")");
    std::list<process> all;
    for (int at = 0; at < 12; ++at) {
        all.emplace_back(dibs_on(here, words("get")));
    }
    for (auto& one : all) {
        const auto told = one.wait();
        EXPECT_EQ(told.status, 0) << told.err;
        EXPECT_EQ(told.out, "t1\n");
    }
    EXPECT_EQ(presented().size(), 1U);
    EXPECT_EQ(get().out, "t1\n");
    EXPECT_EQ(presented().size(), 1U);
}

TEST_F(Token, ATokenThatWasRefusedIsFetchedAnewOnce) {
    const auto first = json::parse(get({"-o", "json"}).out);
    EXPECT_EQ(first["value"], "t1");
    EXPECT_GT(first["valid_for_ms"], 3'500'000);
    const auto fence = std::to_string(first["fence"].get<std::uint64_t>());
    std::list<process> all;
    for (int at = 0; at < 8; ++at) {
        all.emplace_back(dibs_on(here, words("get", {"--seen", fence})));
    }
    for (auto& one : all) {
        EXPECT_EQ(one.wait().out, "t2\n");
    }
    EXPECT_EQ(presented().size(), 2U);
    EXPECT_EQ(run_dibs(here, words("refresh")).out, "t3\n");
    EXPECT_EQ(get().out, "t3\n");
}

TEST_F(Token, TheNextFetchIsGivenTheRefreshTokenOfTheLast) {
    answer(
        R"(echo "{\"access_token\":\"t$n\",\"expires_in\":\"3600\",\"refresh_token\":\"c$n\"}")");
    EXPECT_EQ(get().out, "t1\n");
    EXPECT_EQ(run_dibs(here, words("refresh")).out, "t2\n");
    answer(R"(echo "{\"access_token\":\"t$n\",\"expires_in\":3600,\"refresh_token\":null}")");
    EXPECT_EQ(run_dibs(here, words("refresh")).out, "t3\n");
    EXPECT_EQ(run_dibs(here, words("refresh")).out, "t4\n");
    EXPECT_EQ(presented(), (std::vector<std::string>{"", "c1", "c2", "c2"}));
}

TEST_F(Token, TheRefreshTokenIsALineForTheShell) {
    write_file(fetch,
               "#!/bin/sh\nread -r credential || credential=first\necho \"$credential\" >>" +
                   here.file("presented") +
                   "\necho '{\"access_token\":\"t\",\"expires_in\":60,\"refresh_token\":\"c\"}'\n");
    EXPECT_EQ(get().out, "t\n");
    EXPECT_EQ(run_dibs(here, words("refresh")).out, "t\n");
    EXPECT_EQ(presented(), (std::vector<std::string>{"first", "c"}));
}

TEST_F(Token, WhatACommandLeavesInTheBackgroundHoldsNothingUp) {
    answer(R"(sleep 600 & echo $! >>)" + here.file("sleepers") +
           R"(; echo "{\"access_token\":\"t$n\",\"expires_in\":3600,\"refresh_token\":\"c$n\"}")");
    EXPECT_EQ(get({"--timeout", "20s"}).out, "t1\n");
    const auto left = std::stoi(read_file(here.file("sleepers")));
    EXPECT_EQ(::kill(left, SIGKILL), 0) << "it was left alone";
}

TEST_F(Token, ATimeOutEndsAllThatTheCommandStarted) {
    answer("sleep 600 & echo $! >" + here.file("sleeper") + "; wait");
    EXPECT_EQ(get({"--timeout", "1s"}).status, 69);
    const auto left = std::stoi(read_file(here.file("sleeper")));
    EXPECT_TRUE(eventually([&] {
        const auto stat = "/proc/" + std::to_string(left) + "/stat";
        return !exists(stat) || contains(read_file(stat), ") Z");
    }));
}

TEST_F(Token, TheCommandIsNotInTheProcessGroupOfTheTerminal) {
    answer("cut -d' ' -f5 /proc/$$/stat >" + here.file("group") + "; echo $$ >" + here.file("pid") +
           "; echo t");
    EXPECT_EQ(get({"--life", "1h"}).out, "t\n");
    EXPECT_EQ(read_file(here.file("group")), read_file(here.file("pid")));
}

TEST_F(Token, WhatCameWholeBeforeTheTimeOutCounts) {
    answer(R"(echo "{\"access_token\":\"t$n\",\"expires_in\":3600}"; sleep 600)");
    EXPECT_EQ(get({"--timeout", "1s"}).out, "t1\n");
}

TEST_F(Token, AnEmptyErrorIsNone) {
    for (const auto* const nothing : {"null", "\\\"\\\"", "false"}) {
        answer(std::string(R"(echo "{\"error\":)") + nothing +
               R"(,\"access_token\":\"t\",\"expires_in\":3600}")");
        const auto told = run_dibs(here, words("refresh"));
        EXPECT_EQ(told.out, "t\n") << told.err;
    }
}

TEST_F(Token, ACredentialMayBeUsedUpByACommandThatDoesNotTell) {
    for (const auto* const script :
         {"kill -9 $$", "sleep 60", "echo '{\"access_token\":\"x\"}'", "echo '{broken'"}) {
        SCOPED_TRACE(script);
        EXPECT_EQ(run_dibs(here, {"token", "forget", "crm"}).status, 0);
        const auto before = presented().size();
        answer(script);
        for (int at = 0; at < 2; ++at) {
            const auto told = get({"--timeout", "500ms", "--rotating"});
            EXPECT_EQ(told.status, 77) << told.err;
            EXPECT_TRUE(contains(told.err, "used up the credential is unknown")) << told.err;
            EXPECT_TRUE(contains(told.err, "until somebody has seen to it")) << told.err;
        }
        EXPECT_EQ(presented().size(), before + 1);
    }
}

/// The script of the guide that presents refresh tokens.
std::string script_of_the_guide() {
    const auto guide =
        read_file(std::string(tests::places::source_folder) + "/docs/guides/shared-tokens.md");
    const std::string start = "```sh\n#!/bin/sh\n";
    const auto from = guide.find(start);
    if (from == std::string::npos) {
        return {};
    }
    const auto begin = from + std::string{"```sh\n"}.size();
    return guide.substr(begin, guide.find("```", begin) - begin);
}

// curl in its place: 7 is no connection, 22 an answer with --fail, 28, 52 and 56 no answer to what was sent.
TEST_F(Token, TheScriptOfTheGuidePresentsNothingTwiceThatMayBeUsedUp) {
    auto script = script_of_the_guide();
    const std::string file = "/etc/crm/first-refresh-token";
    const auto at = script.find(file);
    ASSERT_NE(at, std::string::npos) << script;
    script.replace(at, file.size(), here.file("first"));
    write_file(fetch, script);
    ::chmod(fetch.c_str(), 0755);
    write_file(here.file("first"), "c0\n");
    std::filesystem::create_directory(here.file("bin"));
    const auto curl = here.file("bin/curl");
    for (const auto& [ends, status] :
         std::vector<std::pair<int, int>>{{0, 0}, {7, 69}, {28, 77}, {52, 77}, {56, 77}}) {
        SCOPED_TRACE(ends);
        EXPECT_EQ(run_dibs(here, {"token", "forget", "crm"}).status, 0);
        write_file(here.file("presented"), "");
        write_file(
            curl,
            "#!/bin/sh\ncat >>" + here.file("presented") + "\necho >>" + here.file("presented") +
                (ends == 0
                     ? "\necho "
                       "'{\"access_token\":\"t\",\"expires_in\":1,\"refresh_token\":\"c1\"}'\n"
                     : "\nexit " + std::to_string(ends) + "\n"));
        ::chmod(curl.c_str(), 0755);
        for (int call = 0; call < 2; ++call) {
            auto how = dibs_on(here, words("get", {"--rotating"}));
            how.variables["PATH"] = here.file("bin") + ":" + std::getenv("PATH");
            EXPECT_EQ(process(how).wait().status, status);
            if (call == 0) {  // the token of a second is over then, and the back-off
                std::this_thread::sleep_for(std::chrono::milliseconds{1'500});
            }
        }
        const auto seen = presented();
        ASSERT_FALSE(seen.empty());
        EXPECT_EQ(seen.front(), "c0");
        // A token of a second is fetched again, with the new refresh token; so is one that was surely not asked for.
        EXPECT_EQ(seen.size(), status == 77 ? 1U : 2U);
        EXPECT_EQ(seen.back(), ends == 0 ? "c1" : "c0");
    }
}

TEST_F(Token, ATokenThatAFormatCannotTellIsNotTold) {
    answer(R"(printf '{"access_token":"a\\r\\nX-Evil: 1\\u0000","expires_in":3600}')");
    EXPECT_EQ(get({"-o", "header"}).status, 69);
    EXPECT_EQ(get({"-o", "header"}).out, "");
    EXPECT_EQ(get({"-o", "env"}).status, 69);
    EXPECT_EQ(get({"-o", "json"}).status, 0);
    answer(R"(printf '\377\376abc')");
    EXPECT_EQ(run_dibs(here, words("refresh", {"--life", "1h", "-o", "json"})).status, 69);
    EXPECT_EQ(get().out,
              "\xff\xfe"
              "abc\n");
}

TEST_F(Token, FormatsAreFitForWhatReadsThem) {
    answer(R"(echo "it's")");
    EXPECT_EQ(get({"--life", "1h", "-o", "header"}).out, "Authorization: Bearer it's\n");
    const auto told = get({"-o", "env"}).out;
    EXPECT_TRUE(told.starts_with("DIBS_TOKEN='it'\\''s'\nDIBS_TOKEN_FENCE=")) << told;
}

TEST_F(Token, ARefusalIsFinalUntilItIsForgotten) {
    answer(R"(echo '{"error":"invalid_grant","error_description":"revoked"}'; exit 22)");
    for (int at = 0; at < 3; ++at) {
        const auto told = get();
        EXPECT_EQ(told.status, 77);
        EXPECT_TRUE(contains(told.err, "invalid_grant: revoked")) << told.err;
        EXPECT_TRUE(contains(told.err, "crm")) << told.err;
        EXPECT_TRUE(contains(told.err, "`dibs token forget crm`")) << told.err;
    }
    EXPECT_EQ(presented().size(), 1U);
    EXPECT_TRUE(contains(run_dibs(here, {"token", "status", "crm"}).out, "refused"));
    EXPECT_EQ(run_dibs(here, {"token", "forget", "crm"}).status, 0);
    SetUp();
    EXPECT_EQ(get().out, "t2\n");
}

TEST_F(Token, AFailureIsNotRepeatedBeforeItsTime) {
    answer("echo '{\"error\":\"temporarily_unavailable\",\"retry_after\":60}'");
    EXPECT_EQ(get().status, 69);
    const auto told = get();
    EXPECT_EQ(told.status, 69);
    EXPECT_TRUE(contains(told.err, "temporarily_unavailable")) << told.err;
    EXPECT_TRUE(contains(told.err, "not be fetched again for")) << told.err;
    EXPECT_EQ(presented().size(), 1U);
    const auto status = json::parse(run_dibs(here, {"token", "status", "--json", "crm"}).out);
    EXPECT_EQ(status["state"], "failing");
    EXPECT_GT(status["retry_after_ms"], 50'000);
}

TEST_F(Token, AnswersThatSayNothingUsableAreFailures) {
    for (const auto& [script, part] : std::vector<std::pair<std::string, std::string>>{
             {"exit 3", "status 3"},
             {"true", "wrote nothing"},
             {"echo plain", "--life"},
             {"echo '{broken'", "no JSON"},
             {"echo '{\"access_token\":\"x\"}'", "expires_in"},
             {"echo '{\"expires_in\":60}'", "access_token"},
             {"kill -9 $$", "status 137"},
             {"sleep 60", "--timeout"}}) {
        SCOPED_TRACE(script);
        EXPECT_EQ(run_dibs(here, {"token", "forget", "crm"}).status, 0);
        answer(script);
        const auto told = get({"--timeout", "500ms"});
        EXPECT_EQ(told.status, 69);
        EXPECT_TRUE(contains(told.err, part)) << told.err;
    }
}

TEST_F(Token, APageThatTellsOfAnErrorIsNoToken) {
    answer("echo '<html>503 Service Unavailable</html>'");
    const auto told = get({"--life", "1h"});
    EXPECT_EQ(told.status, 69) << told.out;
    EXPECT_EQ(told.out, "");
    EXPECT_TRUE(contains(told.err, "more than one word")) << told.err;
}

TEST_F(Token, NoListingShowsIt) {
    answer(R"(echo '{"access_token":"SECRET-T","expires_in":3600,"refresh_token":"SECRET-C"}')");
    EXPECT_EQ(get().out, "SECRET-T\n");
    for (const auto& listing : std::vector<std::vector<std::string>>{{"show", "crm"},
                                                                     {"show", "crm", "--json"},
                                                                     {"ls"},
                                                                     {"ls", "--json"},
                                                                     {"token", "status", "crm"},
                                                                     {"runs"}}) {
        const auto told = run_dibs(here, listing);
        EXPECT_EQ(told.status, 0) << told.err;
        EXPECT_FALSE(contains(told.out + told.err, "SECRET")) << told.out;
    }
    EXPECT_TRUE(contains(run_dibs(here, {"token", "status", "crm"}).out, "good"));
}

TEST_F(Token, WhatIsSealedIsReadableWithItsKeyAlone) {
    answer(R"(echo '{"access_token":"SECRET-T","expires_in":3600}')");
    const auto key = run_dibs(here, {"token", "new-key"});
    ASSERT_EQ(key.status, 0) << key.err;
    ASSERT_EQ(key.out.size(), 65U);
    write_file(here.file("keys"), key.out);
    ASSERT_EQ(::chmod(here.file("keys").c_str(), 0600), 0);
    EXPECT_EQ(get({"--seal-key", here.file("keys")}).out, "SECRET-T\n");
    EXPECT_FALSE(contains(read_file(here.file("locks.db")) + read_file(here.file("locks.db-wal")),
                          "SECRET-T"));
    const auto without = get();
    EXPECT_EQ(without.status, 78);
    EXPECT_TRUE(contains(without.err, "sealed")) << without.err;
    write_file(here.file("keys"), run_dibs(here, {"token", "new-key"}).out + key.out);
    EXPECT_EQ(get({"--seal-key", here.file("keys")}).out, "SECRET-T\n");
    EXPECT_EQ(presented().size(), 1U);
    write_file(here.file("keys"), "not a key\n");
    EXPECT_EQ(get({"--seal-key", here.file("keys")}).status, 78);
    EXPECT_EQ(get({"--seal-key", here.file("nothing")}).status, 78);
}

TEST_F(Token, AKeyThatIsEmptyIsNotTakenForNone) {
    write_file(here.file("keys"), "");
    ASSERT_EQ(::chmod(here.file("keys").c_str(), 0600), 0);
    EXPECT_EQ(get({"--seal-key", ""}).status, 64);
    EXPECT_EQ(get({"--seal-key", here.file("keys")}).status, 78);
    auto how = dibs_on(here, words("get"));
    how.variables["DIBS_SEAL_KEYS"] = "";
    EXPECT_EQ(process(how).wait().status, 78);
    how.variables.erase("DIBS_SEAL_KEYS");
    how.variables["CREDENTIALS_DIRECTORY"] = here.path();
    write_file(here.file("dibs-seal-keys"), "");
    EXPECT_EQ(process(how).wait().status, 78);
    EXPECT_TRUE(presented().empty()) << "nothing is fetched that would lie there unsealed";
}

TEST_F(Token, WhatCannotBeForgottenIsTold) {
    answer("sleep 30");
    process fetching(dibs_on(here, words("get")));
    ASSERT_TRUE(eventually([&] { return presented().size() == 1; }));
    const auto busy = run_dibs(here, {"token", "forget", "crm", "--wait", "100ms"});
    EXPECT_EQ(busy.status, 75);
    EXPECT_TRUE(contains(busy.err, "nothing was forgotten")) << busy.err;
    fetching.signal(SIGKILL);
    (void)fetching.wait();
    ASSERT_EQ(run_dibs(here, {"hold", "crm", "--for", "1h", "--reason", "audit"}).status, 0);
    const auto held = run_dibs(here, {"token", "forget", "crm", "--wait", "0s"});
    EXPECT_EQ(held.status, 75);
    EXPECT_TRUE(contains(held.err, "audit")) << held.err;
    ASSERT_EQ(run_dibs(here, {"hold", "crm", "--lift"}).status, 0);
    EXPECT_EQ(run_dibs(here, {"token", "forget", "crm"}).status, 0);
}

TEST_F(Token, WhatIsKeptOfSomethingElseIsNotForgotten) {
    const std::vector<std::string> pay{"idempotent", "k", "--fingerprint", "x", "--", "echo", "1"};
    ASSERT_EQ(run_dibs(here, pay).out, "1\n");
    EXPECT_EQ(run_dibs(here, {"token", "forget", "k"}).status, 78);
    auto again = pay;
    again.back() = "2";
    EXPECT_EQ(run_dibs(here, again).out, "1\n");
}

TEST_F(Token, AFileOfKeysThatOthersCanReadIsRefused) {
    write_file(here.file("keys"), run_dibs(here, {"token", "new-key"}).out);
    for (const mode_t open : {0604U, 0644U, 0660U, 0602U}) {
        ASSERT_EQ(::chmod(here.file("keys").c_str(), open), 0);
        const auto refused = get({"--seal-key", here.file("keys")});
        EXPECT_EQ(refused.status, 78) << std::oct << open;
        EXPECT_TRUE(contains(refused.err, "chmod 600")) << refused.err;
    }
    EXPECT_TRUE(presented().empty());
    for (const mode_t narrow : {0600U, 0400U, 0640U}) {
        ASSERT_EQ(::chmod(here.file("keys").c_str(), narrow), 0);
        EXPECT_EQ(get({"--seal-key", here.file("keys")}).status, 0) << std::oct << narrow;
    }
}

TEST_F(Token, WhenTheFetcherIsKilledAnotherOneFetches) {
    answer(R"([ "$n" = 1 ] && sleep 60; echo "{\"access_token\":\"t$n\",\"expires_in\":3600}")");
    process first(dibs_on(here, words("get")));
    ASSERT_TRUE(eventually([&] { return presented().size() == 1; }));
    process second(dibs_on(here, words("get")));
    first.signal(SIGKILL);
    EXPECT_EQ(second.wait().out, "t2\n");
    first.wait();
}

TEST_F(Token, ACredentialWhoseUseIsInDoubtIsNotUsedAgain) {
    answer(
        R"([ "$n" = 2 ] && sleep 60; echo "{\"access_token\":\"t$n\",\"expires_in\":3600,\"refresh_token\":\"c$n\"}")");
    EXPECT_EQ(get().out, "t1\n");
    process first(dibs_on(here, words("refresh")));
    ASSERT_TRUE(eventually([&] { return presented().size() == 2; }));
    first.signal(SIGKILL);
    first.wait();
    EXPECT_EQ(get().out, "t1\n") << "it is still valid";
    const auto told = run_dibs(here, words("get", {"--min-life", "10h"}));
    EXPECT_EQ(told.out, "t1\n");
    EXPECT_EQ(presented().size(), 2U);
    const auto status = run_dibs(here, {"token", "status", "crm"}).out;
    EXPECT_TRUE(contains(status, "whether it has used up the credential is unknown")) << status;
    EXPECT_EQ(run_dibs(here, words("refresh")).out, "t3\n") << "somebody has seen to it";
    EXPECT_EQ(presented().back(), "c1");
}

TEST_F(Token, AFetchThatHasBegunIsBroughtToItsEnd) {
    answer(R"(sleep 1; echo "{\"access_token\":\"t$n\",\"expires_in\":3600}")");
    process first(dibs_on(here, words("get")));
    ASSERT_TRUE(eventually([&] { return presented().size() == 1; }));
    first.signal(SIGTERM);
    EXPECT_EQ(first.wait().status, 128 + SIGTERM);
    EXPECT_EQ(get().out, "t1\n");
    EXPECT_EQ(presented().size(), 1U);
}

TEST_F(Token, WrongUseIsToldAsSuch) {
    for (const auto& wrong : std::vector<std::vector<std::string>>{
             {"token"},
             {"token", "get"},
             {"token", "get", "crm"},
             {"token", "take", "crm", "--", "true"},
             {"token", "status", "crm", "--", "true"},
             {"token", "get", "crm", "--refresh-at", "2", "--", "true"},
             {"token", "get", "crm", "--seen", "x", "--", "true"},
             {"token", "get", "crm", "-o", "xml", "--", "true"},
             {"token", "get", "crm", "--life", "0s", "--", "true"},
             {"token", "new-key", "crm"}}) {
        const auto told = run_dibs(here, wrong);
        EXPECT_EQ(told.status, 64) << told.err;
        EXPECT_FALSE(told.err.empty());
    }
    EXPECT_EQ(run_dibs(here, {"token", "get", "crm", "--", here.file("no-such-program")}).status,
              69);
    auto on_memory = dibs_on(here, words("get"));
    on_memory.variables["DIBS_STORE"] = "memory:";
    EXPECT_EQ(process(on_memory).wait().status, 78);
}

}  // namespace
}  // namespace dibs::testing
