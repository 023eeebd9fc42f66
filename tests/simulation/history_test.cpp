// SPDX-License-Identifier: Apache-2.0
// Goal: what the checker judges is what stands in the history that somebody else reads. The events
// of a run go to it as they are; here they also take the way through their text.

#include "checker/grammar.hpp"
#include "checker/reader.hpp"
#include "simulation/history/judge.hpp"
#include "simulation/history/recorder.hpp"
#include "simulation/run/run.hpp"
#include "simulation/run/seeds.hpp"
#include "simulation/stores/store_model.hpp"
#include "simulation/workloads/workload.hpp"
#include "simulation/world/world.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>

namespace dibs::simulation {

namespace {

using dibs_checker::event;
using dibs_checker::field;
using dibs_checker::history;

history read(const std::string& lines) {
    std::istringstream from{lines};
    return dibs_checker::read_history(from);
}

/// Numbers of texts and arrays may differ, what they stand for may not.
std::string meaning(const history& all, const event& of, field which) {
    using enum dibs_checker::field_type;
    if (which == field::op) {
        return std::string{name_of(of.what)};
    }
    if (which == field::ph) {
        return std::string{name_of(of.ph)};
    }
    switch (dibs_checker::rule_of(which).type) {
        case text:
        case word:
            return all.text(of, which);
        case value:
            return all.value_text(of[which]);
        case value_array: {
            std::string told = "[";
            if (of.knows(which)) {
                for (const auto one : all.arrays.at(static_cast<std::size_t>(of[which]))) {
                    told += all.value_text(one) + ",";
                }
            }
            return told;
        }
        default:
            return std::to_string(of[which]);
    }
}

void expect_same(const history& one, const history& other, const std::string& where) {
    ASSERT_EQ(one.events.size(), other.events.size()) << where;
    for (std::size_t at = 0; at < one.events.size(); ++at) {
        const auto& left = one.events[at];
        const auto& right = other.events[at];
        ASSERT_EQ(left.line, right.line) << where;
        ASSERT_EQ(left.present, right.present) << where << ", line " << left.line;
        ASSERT_EQ(left.known, right.known) << where << ", line " << left.line;
        ASSERT_EQ(left.partner, right.partner) << where << ", line " << left.line;
        for (std::size_t index = 0; index < dibs_checker::field_count; ++index) {
            const auto which = static_cast<field>(index);
            ASSERT_EQ(meaning(one, left, which), meaning(other, right, which))
                << where << ", line " << left.line << ", " << dibs_checker::rule_of(which).name;
        }
    }
}

TEST(History, OfARunIsTheSameWhenItIsReadFromItsText) {
    for (const auto& store : store_kinds()) {
        for (const auto& work : workload_kinds()) {
            if (!suits(work, store)) {
                continue;
            }
            for (std::uint64_t seed = 1; seed <= seeds_for_test(3); ++seed) {
                const auto drawn = draw_plan(seed, {.store = store.name, .workload = work.name});
                const auto told = run(drawn);
                ASSERT_EQ(told.history.complaint, "") << drawn.text();
                const auto lines = told.history.text();
                expect_same(told.history.events, read(lines), drawn.text());
                ASSERT_EQ(report(told.history), report_of_text(lines)) << drawn.text();
            }
        }
    }
}

class Recorder : public ::testing::Test {
  protected:
    Recorder() { history_.event("plan").number("format", 1); }
    recorder history_{world_};

    [[nodiscard]] std::string complaint() { return history_.take().complaint; }

  private:
    world world_;
};

TEST_F(Recorder, EveryKindOfValueIsReadAsItWasWritten) {
    history_.event("fault", "at")
        .text("name", "a \"quoted\\ name\n\x01")
        .checks("excuses", R"("C1","C3")");
    history_.event("read", "inv").number("call", 1).text("proc", "A").text("key", "k");
    history_.event("read", "ok").number("call", 1).text("proc", "A").text("key", "k").null("value");
    history_.event("write", "inv")
        .number("call", 2)
        .text("proc", "A")
        .text("key", "k")
        .text("value", "a \"quoted\" value");
    history_.event("members", "inv").number("call", 3).text("proc", "A").text("key", "s");
    const std::int64_t all[] = {3, -1, 7};
    history_.event("members", "ok")
        .number("call", 3)
        .text("proc", "A")
        .text("key", "s")
        .values("values", all);
    const auto whole = history_.take();
    ASSERT_EQ(whole.complaint, "");
    expect_same(whole.events, read(whole.text()), whole.text());
    EXPECT_EQ(whole.events.events[1][field::excuses], (1 << 1) | (1 << 3));
    EXPECT_EQ(whole.events.arrays.back().size(), 3U);
}

TEST_F(Recorder, WhatCannotBeIsToldWithItsLine) {
    history_.event("held").text("proc", "A").text("key", "k");
    history_.event("try").text("key", "k");
    EXPECT_EQ(complaint(), "line 2: field \"local_ns\" is missing");
}

TEST_F(Recorder, AValueOfTheWrongTypeIsTold) {
    history_.event("try").text("proc", "A").number("key", 3);
    EXPECT_EQ(complaint(), "line 2: field \"key\" has the wrong type");
}

TEST_F(Recorder, AnOpThatTheFormatDoesNotKnowIsTold) {
    history_.event(std::string_view{"ponder"});
    EXPECT_NE(complaint(), "");
}

TEST_F(Recorder, AFieldThatIsToldTwiceIsAMistake) {
    history_.event("try")
        .text("proc", "A")
        .text("key", "k")
        .time("local_ns", sim_time{1})
        .time("local_ns", sim_time{2});
    EXPECT_EQ(complaint(), "line 2: field \"local_ns\" occurs twice");
}

TEST_F(Recorder, AnOrderThatCannotBeIsTold) {
    history_.event("release", "ok").number("call", 9).text("proc", "A").text("key", "k");
    EXPECT_EQ(complaint(), "line 2: call 9 ends and never began");
}

TEST_F(Recorder, AnUnsoundHistoryIsAViolation) {
    history_.event("try").text("key", "k");
    EXPECT_EQ(judge(history_.take()).violations.size(), 1U);
}

}  // namespace

}  // namespace dibs::simulation
