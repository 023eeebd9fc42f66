// SPDX-License-Identifier: Apache-2.0
// Every known-bad history is rejected by the checks that its file name begins with, and by no
// other; every known-good one passes. So a check that stops biting, or bites too much, shows.
#include "checker/event_text.hpp"
#include "support.hpp"

#include <gtest/gtest.h>

#include <map>
#include <sstream>

namespace dibs_checker {
namespace {

using namespace testing;

std::string name_of_file(const ::testing::TestParamInfo<std::filesystem::path>& info) {
    return info.param.stem().string();
}

class BadHistory : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(BadHistory, IsRejectedByTheChecksInItsName) {
    const auto expected = checks_named_by(GetParam());
    ASSERT_FALSE(expected.empty());
    const auto all = read(text_of(GetParam()));
    const auto found = judged(all);
    EXPECT_EQ(with_outcome(found, outcome::violated), expected) << told(found);
    EXPECT_TRUE(with_outcome(found, outcome::undecided).empty()) << told(found);
    for (const auto& one_of : found) {
        for (const auto& what : one_of.violations.kept()) {
            EXPECT_FALSE(what.what.empty());
            EXPECT_FALSE(what.events.empty()) << what.what;
            EXPECT_LE(what.events.size(), 12U) << what.what;
            EXPECT_TRUE(std::is_sorted(what.events.begin(), what.events.end())) << what.what;
            EXPECT_EQ(std::adjacent_find(what.events.begin(), what.events.end()), what.events.end())
                << what.what;
            EXPECT_LT(what.events.back(), all.events.size()) << what.what;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(All, BadHistory, ::testing::ValuesIn(files("bad")), name_of_file);

class GoodHistory : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(GoodHistory, Passes) {
    const auto found = judged(read(text_of(GetParam())));
    EXPECT_TRUE(with_outcome(found, outcome::violated).empty()) << told(found);
    EXPECT_TRUE(with_outcome(found, outcome::undecided).empty()) << told(found);
    EXPECT_FALSE(with_outcome(found, outcome::clean).empty());
}

INSTANTIATE_TEST_SUITE_P(All, GoodHistory, ::testing::ValuesIn(files("good")), name_of_file);

TEST(Histories, HoldThreeBadOnesForEachCheck) {
    std::map<std::string, int> count;
    for (const auto& file : files("bad")) {
        for (const auto& which : checks_named_by(file)) {
            ++count[which];
        }
    }
    for (const auto& entry : all_checks) {
        EXPECT_GE(count[name_of(entry.id)], 3) << name_of(entry.id);
    }
}

// What an unbounded fault accounts for is counted, never ignored.
TEST(Histories, CountWhatAFaultExcuses) {
    const auto folder = files("good").front().parent_path();
    const auto stepped = judged(read(text_of(folder / "excused_clock_step.jsonl")));
    EXPECT_EQ(of(stepped, check_id::c2).excused.count(), 1U);
    // From the step on a lease may end at any time, so the order of the lock is explained.
    EXPECT_EQ(of(stepped, check_id::c4).excused.count(), 0U);
    const auto failed_over = judged(read(text_of(folder / "excused_failover.jsonl")));
    EXPECT_EQ(of(failed_over, check_id::c1).excused.count(), 1U);
    EXPECT_EQ(of(failed_over, check_id::c2).excused.count(), 1U);
    const auto failed_back = judged(read(text_of(folder / "excused_failback.jsonl")));
    EXPECT_EQ(of(failed_back, check_id::c4).excused.count(), 1U);
    const auto given_twice = judged(read(text_of(folder / "excused_fence_given_twice.jsonl")));
    EXPECT_EQ(of(given_twice, check_id::c3).excused.count(), 2U);
    EXPECT_EQ(of(given_twice, check_id::c5).excused.count(), 2U);
}

// A fault excuses what comes after it, not what came before, and only what it names.
TEST(Histories, ExcuseNothingBeforeTheFault) {
    const auto folder = files("good").front().parent_path();
    auto text = text_of(folder / "excused_failover.jsonl");
    const std::string excuses = R"(["C1","C2"])";
    const auto at = text.find(excuses);
    ASSERT_NE(at, std::string::npos);
    text.replace(at, excuses.size(), R"(["C2","C3"])");
    EXPECT_EQ(with_outcome(judged(read(text)), outcome::violated), std::set<std::string>{"C1"});

    // The same fault at the end.
    std::istringstream lines{text};
    std::string moved;
    std::string fault;
    for (std::string line; std::getline(lines, line);) {
        if (line.find("\"fault\"") != std::string::npos) {
            fault = R"({"seq":999,"sim_ns":9000000000,"op":"fault","ph":"at","name":"failover",)"
                    R"("excuses":["C1","C2"]})";
        } else {
            moved += line + "\n";
        }
    }
    EXPECT_EQ(with_outcome(judged(read(moved + fault)), outcome::violated),
              (std::set<std::string>{"C1", "C2", "C4"}));
}

// A violation of a register is told by operations that violate it on their own.
TEST(Histories, AreShortenedToWhatIsViolatedByItself) {
    int tried = 0;
    for (const auto& file : files("bad")) {
        if (file.stem().string().rfind("C4_", 0) != 0) {
            continue;
        }
        const auto text = text_of(file);
        const auto all = read(text);
        std::vector<std::string> lines;
        std::istringstream from{text};
        for (std::string line; std::getline(from, line);) {
            lines.push_back(line);
        }
        const auto found = judged(all);
        for (const auto& what : of(found, check_id::c4).violations.kept()) {
            // An answer may be shown without its question, where that says nothing.
            std::set<position> needed(what.events.begin(), what.events.end());
            for (const auto at : what.events) {
                if (all.events[at].partner < at) {
                    needed.insert(all.events[at].partner);
                }
            }
            std::string excerpt = lines.front() + "\n";
            for (const auto at : needed) {
                excerpt += lines.at(all.events[at].line - 1) + "\n";
            }
            const auto again = judged(read(excerpt));
            EXPECT_EQ(of(again, check_id::c4).outcome(), outcome::violated) << file << excerpt;
            ++tried;
        }
    }
    EXPECT_GE(tried, 8);
}

// The lock is judged as strictly as ever up to the fault.
TEST(Histories, ExcuseALockOnlyAfterTheFault) {
    const auto folder = files("bad").front().parent_path();
    const auto text = text_of(folder / "C2_C4_two_believers.jsonl") +
                      R"({"seq":900,"sim_ns":9000000000,"op":"fault","ph":"at","name":"step",)"
                      R"("excuses":["C1","C2","C3"]})";
    EXPECT_EQ(with_outcome(judged(read(text)), outcome::violated),
              (std::set<std::string>{"C2", "C4"}));
}

/// The events, as text, of the only violation that a check finds.
std::vector<std::string> excerpt(const history& all, check_id which) {
    const auto found = judged(all);
    const auto& list = of(found, which).violations.kept();
    EXPECT_EQ(list.size(), 1U);
    std::vector<std::string> made;
    for (const auto at : list.empty() ? std::vector<position>{} : list.front().events) {
        made.push_back(event_name(all.events[at]) + " " + event_fields(all, all.events[at]));
    }
    return made;
}

history bad(const std::string& name) {
    return read(text_of(files("bad").front().parent_path() / (name + ".jsonl")));
}

// Shortening keeps what the violation rests on: without the write in doubt the refusal alone would
// be called wrong, which it is not.
TEST(Histories, AreNotShortenedToWhatIsNotWrong) {
    EXPECT_EQ(excerpt(bad("C4_refusal_proves_a_write"), check_id::c4).size(), 8U);
    const auto wrong_read = excerpt(bad("C4_wrong_read_beside_a_right_one"), check_id::c4);
    ASSERT_EQ(wrong_read.size(), 2U);
    EXPECT_NE(wrong_read.back().find("value=\"zz\""), std::string::npos) << wrong_read.back();
}

TEST(Histories, AreShortenedHoweverLongTheyAre) {
    auto text = sound_history(1, 4'000);
    const auto read_at = text.find("\"op\":\"read\",\"ph\":\"ok\"", text.size() / 2);
    ASSERT_NE(read_at, std::string::npos);
    const auto value = text.find("\"value\":", read_at) + 8;
    text.replace(value, text.find('}', value) - value, "null");
    EXPECT_EQ(excerpt(read(text), check_id::c4).size(), 4U);
}

}  // namespace
}  // namespace dibs_checker
