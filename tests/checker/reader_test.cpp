// SPDX-License-Identifier: Apache-2.0
// The reader takes what the format's page describes, and nothing else; each refusal names its line.
#include "checker/reader.hpp"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace dibs_checker {
namespace {

const std::string plan = R"({"seq":0,"sim_ns":0,"op":"plan","format":1})"
                         "\n";

history read(const std::string& text) {
    std::istringstream from{text};
    return read_history(from);
}

/// What the reader says about a history; empty when it is taken.
std::string complaint(const std::string& text) {
    try {
        (void)read(text);
        return "";
    } catch (const bad_history& trouble) {
        return trouble.what();
    }
}

std::string second_line(const std::string& line) {
    return complaint(plan + line + "\n");
}

const std::string inv =
    R"({"seq":1,"sim_ns":5,"op":"release","ph":"inv","call":1,"proc":"A","key":"k","fence":3})"
    "\n";

TEST(Reader, JoinsTheEndsOfACall) {
    const auto made = read(plan + inv + "\n  \r\n" +
                           R"({"seq":9,"sim_ns":5,"op":"release","ph":"ok","call":1,)"
                           R"("proc":"A","key":"k"})");
    ASSERT_EQ(made.events.size(), 3U);
    EXPECT_EQ(made.events[1].partner, 2U);
    EXPECT_EQ(made.events[2].partner, 1U);
    EXPECT_EQ(made.events[2][field::fence], 3);
    EXPECT_EQ(made.text(made.events[2], field::proc), "A");
    EXPECT_EQ(made.events[2].line, 5U);
}

TEST(Reader, GivesWhatIsAbsentItsDefault) {
    const auto made = read(plan);
    EXPECT_EQ(made.plan()[field::margin_ppm], 10'000);
    EXPECT_EQ(made.plan()[field::margin_ns], 2'000'000);
    EXPECT_FALSE(made.plan().has(field::wake_bound_ns));
}

TEST(Reader, TellsTheTextOneFromTheNumberOne) {
    const auto made =
        read(plan +
             R"({"seq":1,"sim_ns":0,"op":"add","ph":"inv","call":1,"proc":"A","key":"s","value":1})"
             "\n"
             R"({"seq":2,"sim_ns":0,"op":"add","ph":"inv","call":2,"proc":"A","key":"s",)"
             R"("value":"1"})");
    EXPECT_NE(made.events[1][field::value], made.events[2][field::value]);
    EXPECT_EQ(made.value_text(made.events[1][field::value]), "1");
    EXPECT_EQ(made.value_text(made.events[2][field::value]), "\"1\"");
}

TEST(Reader, RefusesWhatIsNoObject) {
    EXPECT_EQ(second_line("x"), "line 2: not a JSON object (at byte 1)");
    EXPECT_EQ(second_line("3"), "line 2: not a JSON object");
    EXPECT_EQ(second_line("[]"), "line 2: not a JSON object");
    EXPECT_EQ(second_line("\"a\""), "line 2: not a JSON object");
    EXPECT_EQ(second_line("null"), "line 2: not a JSON object");
    EXPECT_NE(second_line(R"({"seq":1,"sim_ns":0,"op":"heal"} {})"), "");
    EXPECT_NE(second_line(R"({"seq":1,"sim_ns":0,"op":"heal")"), "");
    EXPECT_EQ(complaint(""), "line 0: the history is empty");
}

TEST(Reader, RefusesFieldsThatItDoesNotKnow) {
    EXPECT_EQ(second_line(R"({"seq":1,"sim_ns":0,"op":"heal","token":"x"})"),
              "line 2: unknown field \"token\"");
    EXPECT_EQ(second_line(R"({"seq":1,"sim_ns":0,"op":"heal","key":"x"})"),
              "line 2: \"heal\" has no field \"key\"");
    EXPECT_EQ(second_line(R"({"seq":1,"seq":2,"sim_ns":0,"op":"heal"})"),
              "line 2: field \"seq\" occurs twice");
    EXPECT_EQ(second_line(R"({"seq":1,"sim_ns":0,"op":"heal","note":{"a":1}})"),
              "line 2: an object within the event");
    EXPECT_EQ(second_line(R"({"seq":1,"sim_ns":0,"op":"heal","ph":"ok"})"),
              "line 2: \"heal\" has no ph \"ok\"");
    EXPECT_EQ(second_line(R"({"seq":1,"sim_ns":0,"op":"lock"})"), "line 2: unknown op \"lock\"");
    EXPECT_EQ(second_line(R"({"seq":1,"sim_ns":0,"op":"read","ph":"okay"})"),
              "line 2: unknown ph \"okay\"");
}

TEST(Reader, RefusesWhatIsMissing) {
    EXPECT_EQ(second_line(R"({"sim_ns":0,"op":"heal"})"), "line 2: field \"seq\" is missing");
    EXPECT_EQ(second_line(R"({"seq":1,"sim_ns":0})"), "line 2: field \"op\" is missing");
    EXPECT_EQ(second_line(R"({"seq":1,"sim_ns":0,"op":"read","key":"k","proc":"A"})"),
              "line 2: \"read\" needs a ph");
    EXPECT_EQ(second_line(R"({"seq":1,"sim_ns":0,"op":"wake","proc":"A"})"),
              "line 2: field \"key\" is missing");
}

TEST(Reader, RefusesValuesOfTheWrongKind) {
    EXPECT_EQ(second_line(R"({"seq":"1","sim_ns":0,"op":"heal"})"),
              "line 2: field \"seq\" has the wrong type");
    EXPECT_EQ(second_line(R"({"seq":1.0,"sim_ns":0,"op":"heal"})"), "line 2: numbers are whole");
    EXPECT_EQ(second_line(R"({"seq":-1,"sim_ns":0,"op":"heal"})"),
              "line 2: field \"seq\" is out of range");
    EXPECT_EQ(second_line(R"({"seq":9223372036854775808,"sim_ns":0,"op":"heal"})"),
              "line 2: field \"seq\" is out of range");
    EXPECT_EQ(second_line(R"({"seq":1,"sim_ns":2305843009213693952,"op":"heal"})"), "");
    EXPECT_EQ(second_line(R"({"seq":1,"sim_ns":2305843009213693953,"op":"heal"})"),
              "line 2: field \"sim_ns\" is out of range");
    EXPECT_EQ(second_line(R"({"seq":1,"sim_ns":0,"op":"clock","store_ns":-2305843009213693953})"),
              "line 2: field \"store_ns\" is out of range");
    EXPECT_EQ(second_line(R"({"seq":1,"sim_ns":0,"op":"wake","proc":"","key":"k"})"),
              "line 2: field \"proc\" is empty");
    EXPECT_EQ(second_line(R"({"seq":1,"sim_ns":0,"op":"wake","proc":null,"key":"k"})"),
              "line 2: field \"proc\" has the wrong type");
    EXPECT_EQ(second_line(R"({"seq":1,"sim_ns":0,"op":"wake","proc":["A"],"key":"k"})"),
              "line 2: field \"proc\" has the wrong type");
    EXPECT_EQ(second_line(R"({"seq":1,"sim_ns":0,"op":"fault","ph":"at","name":"x",)"
                          R"("excuses":["C4"]})"),
              "line 2: no fault excuses C4");
    EXPECT_EQ(second_line(R"({"seq":1,"sim_ns":0,"op":"fault","ph":"at","name":"x",)"
                          R"("excuses":["C13"]})"),
              "line 2: \"C13\" is no check");
    EXPECT_EQ(second_line(R"({"seq":1,"sim_ns":0,"op":"fault","ph":"at","name":"x",)"
                          R"("excuses":"C1"})"),
              "line 2: \"C1\" is no check");
}

TEST(Reader, RefusesOrdersThatCannotBe) {
    EXPECT_EQ(complaint(R"({"seq":0,"sim_ns":0,"op":"heal"})"),
              "line 1: the first event must be the plan");
    EXPECT_EQ(second_line(R"({"seq":1,"sim_ns":0,"op":"plan","format":1})"),
              "line 2: a second plan");
    EXPECT_EQ(complaint(R"({"seq":0,"sim_ns":0,"op":"plan","format":2})"),
              "line 1: format 2 is not known");
    EXPECT_EQ(second_line(R"({"seq":0,"sim_ns":0,"op":"heal"})"), "line 2: seq does not rise");
    EXPECT_EQ(complaint(plan + inv + R"({"seq":2,"sim_ns":4,"op":"heal"})"),
              "line 3: sim_ns falls");
    EXPECT_EQ(complaint(plan + R"({"seq":1,"sim_ns":0,"op":"over"})" + "\n" +
                        R"({"seq":2,"sim_ns":4,"op":"heal"})"),
              "line 3: an event after \"over\"");
}

TEST(Reader, RefusesCallsThatCannotBe) {
    const std::string ok = R"({"seq":2,"sim_ns":5,"op":"release","ph":"ok","call":1,)"
                           R"("proc":"A","key":"k"})"
                           "\n";
    EXPECT_EQ(complaint(plan + inv + ok), "");
    EXPECT_EQ(complaint(plan + ok), "line 2: call 1 ends and never began");
    EXPECT_EQ(complaint(plan + inv + ok +
                        R"({"seq":3,"sim_ns":5,"op":"release","ph":"info","call":1,)"
                        R"("proc":"A","key":"k"})"),
              "line 4: call 1 ends twice");
    EXPECT_EQ(complaint(plan + inv +
                        R"({"seq":2,"sim_ns":5,"op":"release","ph":"inv","call":1,)"
                        R"("proc":"A","key":"k","fence":4})"),
              "line 3: call 1 began before");
    EXPECT_EQ(complaint(plan + inv +
                        R"({"seq":2,"sim_ns":5,"op":"release","ph":"ok","call":1,)"
                        R"("proc":"B","key":"k"})"),
              "line 3: \"proc\" differs from the call's");
    EXPECT_EQ(complaint(plan + inv +
                        R"({"seq":2,"sim_ns":5,"op":"release","ph":"ok","call":1,)"
                        R"("proc":"A","key":"k","fence":4})"),
              "line 3: \"fence\" differs from the call's");
    EXPECT_EQ(complaint(plan + inv +
                        R"({"seq":2,"sim_ns":5,"op":"hand_over","ph":"ok","call":1,)"
                        R"("proc":"A","key":"k"})"),
              "line 3: the call began as \"release\"");
}

TEST(Reader, RefusesGrantsThatAreToldByHalves) {
    const std::string asked =
        R"({"seq":1,"sim_ns":5,"op":"acquire","ph":"inv","call":1,"proc":"A","local_ns":5,"key":"k","ttl_ns":9})"
        "\n";
    const std::string told = R"({"seq":2,"sim_ns":5,"op":"acquire","ph":"ok","call":1,)"
                             R"("proc":"A","local_ns":6,"key":"k","fence":7,)";
    EXPECT_EQ(complaint(plan + asked + told + R"("deadline_local_ns":3})"),
              "line 3: field \"sent_local_ns\" is missing");
    EXPECT_EQ(complaint(plan + asked + told + R"("handed_on":true,"sent_local_ns":3})"),
              "line 3: field \"sent_local_ns\" is that of the block, and may not be repeated");
    EXPECT_EQ(complaint(plan + asked + told +
                        R"("sent_local_ns":3,"deadline_local_ns":3,"fence_last":6})"),
              "line 3: the block of fences ends before it begins");
}

TEST(Reader, RefusesTheActsOfTheDead) {
    const std::string kill =
        R"({"seq":2,"sim_ns":5,"op":"fault","ph":"at","name":"kill","proc":"A"})"
        "\n";
    EXPECT_EQ(
        complaint(plan + inv + kill + R"({"seq":3,"sim_ns":5,"op":"wake","proc":"A","key":"k"})"),
        "line 4: \"A\" was killed before");
    EXPECT_EQ(second_line(R"({"seq":2,"sim_ns":5,"op":"fault","ph":"at","name":"kill"})"),
              "line 2: whom does it kill?");
}

TEST(Reader, RefusesFaultsThatCannotBe) {
    const std::string begin =
        R"({"seq":1,"sim_ns":5,"op":"fault","ph":"begin","name":"cut","id":4})"
        "\n";
    const std::string end = R"({"seq":2,"sim_ns":5,"op":"fault","ph":"end","name":"cut","id":4})"
                            "\n";
    EXPECT_EQ(complaint(plan + begin + end), "");
    EXPECT_EQ(complaint(plan + end), "line 2: fault 4 never began");
    EXPECT_EQ(complaint(plan + begin + end +
                        R"({"seq":3,"sim_ns":5,"op":"fault","ph":"end","name":"cut","id":4})"),
              "line 4: fault 4 ends twice");
    EXPECT_EQ(complaint(plan + begin +
                        R"({"seq":3,"sim_ns":5,"op":"fault","ph":"end","name":"rain","id":4})"),
              "line 3: the fault began as \"cut\"");
}

TEST(Reader, RefusesWordsThatItDoesNotKnow) {
    EXPECT_EQ(second_line(R"({"seq":1,"sim_ns":5,"op":"end","store_ns":1,"key":"k","fence":1,)"
                          R"("why":"bored"})"),
              "line 2: unknown why \"bored\"");
    EXPECT_EQ(second_line(R"({"seq":1,"sim_ns":5,"op":"slot","key":"k","policy":"once"})"),
              "line 2: unknown policy \"once\"");
    EXPECT_EQ(second_line(R"({"seq":1,"sim_ns":5,"op":"clock","proc":"A"})"),
              "line 2: a clock event needs either proc and local_ns, or store_ns");
    EXPECT_EQ(second_line(R"({"seq":1,"sim_ns":5,"op":"stored","store_ns":1,"key":"k","fence":1})"),
              "line 2: a stored grant has holder, fence and store_expires_ns");
    EXPECT_EQ(second_line(R"({"seq":1,"sim_ns":5,"op":"job","ph":"inv","call":1,"proc":"A",)"
                          R"("key":"k","fence":1})"),
              "line 2: a job without its slot");
}

}  // namespace
}  // namespace dibs_checker
