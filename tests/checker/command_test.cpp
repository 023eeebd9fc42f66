// SPDX-License-Identifier: Apache-2.0
// The command: what it is asked by its words, what it says, and its exit status.
#include "checker/command.hpp"

#include "support.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace dibs_checker {
namespace {

using namespace testing;

struct run_result {
    int status = -1;
    std::string out;
    std::string err;
};

run_result run(const std::vector<std::string>& words, const std::string& input = {}) {
    std::istringstream in{input};
    std::ostringstream out;
    std::ostringstream err;
    const int status = run_command(words, in, out, err);
    return {status, out.str(), err.str()};
}

std::string bad_file(const std::string& name) {
    return (files("bad").front().parent_path() / (name + ".jsonl")).string();
}
std::string good_file(const std::string& name) {
    return (files("good").front().parent_path() / (name + ".jsonl")).string();
}

/// A folder that is removed afterwards.
class folder {
  public:
    folder() {
        std::string name = (std::filesystem::temp_directory_path() / "checker-XXXXXX").string();
        path_ = ::mkdtemp(name.data());
    }
    ~folder() { std::filesystem::remove_all(path_); }
    folder(const folder&) = delete;
    folder& operator=(const folder&) = delete;
    [[nodiscard]] std::string file(const std::string& name) const {
        return (path_ / name).string();
    }

  private:
    std::filesystem::path path_;
};

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

/// A register whose search cannot end within few steps.
std::string endless() {
    std::string made = R"({"seq":0,"sim_ns":0,"op":"plan","format":1})"
                       "\n";
    int seq = 1;
    std::string ends;
    for (int write = 1; write <= 12; ++write) {
        const auto number = std::to_string(write);
        made += R"({"seq":)" + std::to_string(seq++) +
                R"(,"sim_ns":0,"op":"write","ph":"inv","call":)" + number +
                R"(,"proc":"A","key":"row","fence":1,"value":)" + number + "}\n";
    }
    for (int write = 1; write <= 12; ++write) {
        made += R"({"seq":)" + std::to_string(seq++) +
                R"(,"sim_ns":9,"op":"write","ph":"ok","call":)" + std::to_string(write) +
                R"(,"proc":"A","key":"row"})"
                "\n";
    }
    made += R"({"seq":)" + std::to_string(seq++) +
            R"(,"sim_ns":9,"op":"read","ph":"inv","call":50,"proc":"B","key":"row"})"
            "\n";
    made += R"({"seq":)" + std::to_string(seq++) +
            R"(,"sim_ns":10,"op":"read","ph":"ok","call":50,"proc":"B","key":"row","value":99})"
            "\n";
    return made;
}

TEST(Command, TellsCleanFromViolatedByItsStatus) {
    EXPECT_EQ(run({good_file("two_take_turns")}).status, exit_clean);
    EXPECT_EQ(run({bad_file("C1_granted_while_held")}).status, exit_violated);
}

TEST(Command, NeverCallsAnUnfinishedSearchAPass) {
    const auto few = run({"--steps", "50", "-"}, endless());
    EXPECT_EQ(few.status, exit_undecided);
    EXPECT_TRUE(contains(few.out, "C4  undecided")) << few.out;
    EXPECT_TRUE(contains(few.out, "this is no pass")) << few.out;
    EXPECT_EQ(run({"--steps=1000000", "-"}, endless()).status, exit_violated);
}

TEST(Command, PutsAViolationBeforeAnUnfinishedSearch) {
    const auto both =
        endless() +
        R"({"seq":100,"sim_ns":20,"op":"count","ph":"inv","call":60,"proc":"B","key":"n"})"
        "\n" +
        R"({"seq":101,"sim_ns":21,"op":"count","ph":"ok","call":60,"proc":"B","key":"n","value":1})";
    EXPECT_EQ(run({"--steps", "50", "-"}, both).status, exit_violated);
}

TEST(Command, RunsTheChecksThatAreSelected) {
    const auto file = bad_file("C1_C7_expired_grant_brought_back");
    EXPECT_EQ(run({"--check", "C2,C3", file}).status, exit_clean);
    EXPECT_EQ(run({"--check=C7", file}).status, exit_violated);
    EXPECT_FALSE(contains(run({"--check", "C7", file}).out, "C1 "));
}

TEST(Command, ExplainsAViolationWithItsEvents) {
    const auto told = run({bad_file("C1_granted_while_held")});
    EXPECT_TRUE(
        contains(told.out,
                 R"(violation: the store granted key "k" to "h2" (fence 11) when its clock )"
                 R"(showed 500 ms; the grant to "h1" (fence 10) counts until 1.001 s)"))
        << told.out;
    EXPECT_TRUE(contains(told.out, "line 2  at 1 ms  grant")) << told.out;
    EXPECT_TRUE(contains(told.out, "line 3  at 500 ms  grant")) << told.out;
    EXPECT_TRUE(contains(told.out, "C5  not judged no update is lost: nothing")) << told.out;
}

TEST(Command, SaysTheSameAsJson) {
    const auto told = run({"--json", bad_file("C1_granted_while_held")});
    EXPECT_EQ(told.status, exit_violated);
    const auto read = nlohmann::json::parse(told.out);
    EXPECT_EQ(read.at("outcome"), "violated");
    const auto& first = read.at("checks").at(0);
    EXPECT_EQ(first.at("check"), "C1");
    EXPECT_EQ(first.at("outcome"), "violated");
    EXPECT_EQ(first.at("violations").at("count"), 1);
    const auto& events = first.at("violations").at("shown").at(0).at("events");
    ASSERT_EQ(events.size(), 2U);
    EXPECT_EQ(events.at(0).at("line"), 2);
    EXPECT_EQ(events.at(1).at("line"), 3);
    EXPECT_EQ(read.at("checks").size(), check_count);
    EXPECT_EQ(run({"--json", good_file("two_take_turns")}).status, exit_clean);
}

TEST(Command, NamesTheLineOfABadHistory) {
    const auto told = run({"-"},
                          R"({"seq":0,"sim_ns":0,"op":"plan","format":1})"
                          "\nnonsense\n");
    EXPECT_EQ(told.status, exit_bad_history);
    EXPECT_EQ(told.err,
              "dibs-check-history: standard input, line 2: not a JSON object (at byte 2)\n");
    EXPECT_EQ(told.out, "");
    EXPECT_EQ(run({"/nonexistent/run.jsonl"}).status, exit_bad_history);
    EXPECT_EQ(run({"/"}).status, exit_bad_history);
}

TEST(Command, RefusesWordsThatItDoesNotKnow) {
    const auto file = good_file("two_take_turns");
    for (const auto& words : std::vector<std::vector<std::string>>{{},
                                                                   {"--check", "C13", file},
                                                                   {"--check", "C04", file},
                                                                   {"--check", "", file},
                                                                   {"--check", "C1,", file},
                                                                   {"--check"},
                                                                   {"--steps", "0", file},
                                                                   {"--steps", "many", file},
                                                                   {"--json=yes", file},
                                                                   {"--json", "--quiet", file},
                                                                   {"--colour", file},
                                                                   {file, file}}) {
        const auto told = run(words);
        EXPECT_EQ(told.status, exit_usage) << told.out;
        EXPECT_TRUE(contains(told.err, "--help tells more")) << told.err;
    }
}

TEST(Command, IsQuietWhenAsked) {
    const auto told = run({"--quiet", bad_file("C1_granted_while_held")});
    EXPECT_EQ(told.status, exit_violated);
    EXPECT_EQ(told.out + told.err, "");
}

TEST(Command, CanRequireThatThereIsSomethingToJudge) {
    const auto file = good_file("two_take_turns");
    EXPECT_EQ(run({"--require", "--check", "C1,C9", file}).status, exit_clean);
    EXPECT_EQ(run({"--require", "--check", "C1,C10", file}).status, exit_undecided);
}

TEST(Command, HelpsAndListsItsChecks) {
    const auto help = run({"--help"});
    EXPECT_EQ(help.status, exit_clean);
    EXPECT_TRUE(contains(help.out, "Examples:"));
    const auto list = run({"--list"});
    EXPECT_EQ(list.status, exit_clean);
    EXPECT_EQ(std::count(list.out.begin(), list.out.end(), '\n'), 12);
}

TEST(Command, DrawsAPicture) {
    const folder where;
    const auto page = where.file("run.html");
    EXPECT_EQ(run({"--quiet", "--html", page, bad_file("C2_C4_two_believers")}).status,
              exit_violated);
    const auto drawn = text_of(page);
    EXPECT_TRUE(contains(drawn, "<!DOCTYPE html>"));
    EXPECT_TRUE(contains(drawn, "C2: broken"));
    EXPECT_TRUE(contains(drawn, "process &quot;B&quot;"));
    EXPECT_TRUE(contains(drawn, "class=\"badge\""));
    EXPECT_EQ(
        run({"--quiet", "--html", where.file("no/such/folder.html"), good_file("two_take_turns")})
            .status,
        exit_no_output);
}

}  // namespace
}  // namespace dibs_checker
