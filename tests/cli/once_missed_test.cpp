// SPDX-License-Identifier: Apache-2.0
// dibs once after an outage (--missed), while the slot before is still being run (--overlap), and what is kept of a
// command's output. The wall clock of each process is set to one minute past the hour, so that half an hour is left before
// another slot begins.
#include "shifted_clock.hpp"
#include "support.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

namespace dibs::testing {
namespace {

using list = std::vector<std::string>;

constexpr long hour = 3600;
/// 2026-11-30T10:01:00Z.
constexpr long reference = 1'796'032'860;

class OnceMissed : public ::testing::Test {
  protected:
    /// Of a job every half hour; the clock shows `hours` after the reference.
    launch host(double hours, list options, const std::string& script) {
        const shifted_clock clock(here_, "clock" + std::to_string(++clocks_));
        clock.shift(static_cast<int>(reference - ::time(nullptr)) + static_cast<int>(hours * hour));
        list words{"once", "job", "--cron", "*/30 * * * *"};
        words.insert(words.end(), options.begin(), options.end());
        words.insert(words.end(), {"--", "sh", "-c", script});
        return clock.seen_by(dibs_on(here_, words));
    }
    outcome run(double hours, list options, const std::string& script = "echo $DIBS_SLOT >> ran") {
        return process(host(hours, std::move(options), script)).wait();
    }
    [[nodiscard]] list ran() const {
        list lines;
        const auto text = exists(here_.file("ran")) ? read_file(here_.file("ran")) : "";
        for (std::size_t from = 0; from < text.size();) {
            const auto end = text.find('\n', from);
            lines.push_back(text.substr(from, end - from));
            from = end + 1;
        }
        return lines;
    }
    [[nodiscard]] std::string runs(const list& options) const {
        list words{"runs", "job"};
        words.insert(words.end(), options.begin(), options.end());
        return run_dibs(here_, words).out;
    }
    /// From 10:00 on, every half hour.
    static list slots(int count, int first = 0) {
        list names;
        for (int at = first; at < first + count; ++at) {
            names.push_back("2026-11-30T" + std::to_string(10 + at / 2) +
                            (at % 2 == 0 ? ":00[UTC]" : ":30[UTC]"));
        }
        return names;
    }

    folder here_;
    int clocks_ = 0;
};

TEST_F(OnceMissed, AllRunOldestFirstOneAtATimeAndEachOnce) {
    EXPECT_EQ(run(0, {"--missed", "all"}).status, 0);
    ASSERT_EQ(ran(), slots(1)) << "nothing is known of the job: nothing was missed";
    // Three hours later all hosts are back at once.
    const std::string busy =
        "echo begins >> at; sleep 0.05; echo $DIBS_SLOT >> ran; echo ends >> at";
    std::vector<std::unique_ptr<process>> hosts;
    for (int number = 0; number < 3; ++number) {
        hosts.push_back(
            std::make_unique<process>(host(3, {"--missed", "all", "--wait", "5m"}, busy)));
    }
    for (const auto& one : hosts) {
        const auto ended = one->wait();
        EXPECT_EQ(ended.status, 0) << ended.err;
        EXPECT_EQ(ended.out + ended.err, "");
    }
    EXPECT_EQ(ran(), slots(7));
    const auto at = read_file(here_.file("at"));
    EXPECT_EQ(at.find("begins\nbegins"), std::string::npos) << at;
    EXPECT_EQ(run(3, {"--missed", "all"}).status, 0);
    EXPECT_EQ(ran(), slots(7)) << "a trigger that comes late finds them done";
}

TEST_F(OnceMissed, WhatIsMoreThanTheBoundIsLeftOutAndTold) {
    EXPECT_EQ(run(0, {}).status, 0);
    const list bounded{"--missed", "all", "--missed-max", "2"};
    auto looks = bounded;
    looks.push_back("--dry-run");
    const auto outlook = run(3, looks).out;
    EXPECT_NE(outlook.find("in all      2 slots"), std::string::npos) << outlook;
    EXPECT_NE(outlook.find("left out    4\n"), std::string::npos) << outlook;
    const auto cut = run(3, bounded);
    EXPECT_EQ(cut.status, 0);
    EXPECT_NE(cut.err.find("4 missed slots of \"job\" are left out"), std::string::npos) << cut.err;
    auto expected = slots(1);
    const auto last = slots(2, 5);
    expected.insert(expected.end(), last.begin(), last.end());
    EXPECT_EQ(ran(), expected);
    EXPECT_EQ(run(3, {"--missed", "all"}).err, "");
    EXPECT_EQ(ran(), expected) << "left out is left out";
}

TEST_F(OnceMissed, TheLastAloneOrNoneAtAll) {
    EXPECT_EQ(run(0, {}).status, 0);
    EXPECT_EQ(run(3, {}).status, 0);
    EXPECT_EQ(ran(), (list{slots(1).front(), slots(1, 6).front()}));
    // A quarter of an hour after its time.
    const list none{"--missed", "none"};
    EXPECT_EQ(run(5.25, none).status, 0);
    auto coded = none;
    coded.insert(coded.end(), {"--held-code", "9", "-v"});
    const auto told = run(5.25, coded);
    EXPECT_EQ(told.status, 9);
    EXPECT_NE(told.err.find("was missed"), std::string::npos) << told.err;
    EXPECT_EQ(run(5.25, {"--missed", "none", "--condition"}).status, 1);
    EXPECT_EQ(ran().size(), 2U);
    EXPECT_EQ(run(5.25, {"--missed", "none", "--late", "20m"}).status, 0);
    EXPECT_EQ(ran().size(), 3U);
    EXPECT_EQ(run(6, none).status, 0) << "in time";
    EXPECT_EQ(ran().size(), 4U);
}

TEST_F(OnceMissed, ARetryIsNoMissedSlot) {
    const list none{"--missed", "none", "--retries", "1", "--backoff", "0s"};
    EXPECT_EQ(run(0, none, "exit 3").status, 3);
    EXPECT_EQ(run(0.4, none).status, 0);
    EXPECT_EQ(ran(), slots(1));
}

TEST_F(OnceMissed, AFailureIsToldAndTheOthersRunAllTheSame) {
    EXPECT_EQ(run(0, {}).status, 0);
    const auto ended = run(1.5,
                           {"--missed", "all"},
                           "echo $DIBS_SLOT >> ran; case $DIBS_SLOT in *10:30*) exit 7;; esac");
    EXPECT_EQ(ended.status, 7);
    EXPECT_EQ(ran(), slots(4));
    const auto kept = runs({});
    EXPECT_NE(kept.find("2026-11-30T10:30[UTC]  failed"), std::string::npos) << kept;
    EXPECT_EQ(run(2, {"--missed", "all"}).status, 0) << "the next slot is not held up by it";
    EXPECT_EQ(ran(), slots(5));
}

TEST_F(OnceMissed, ASlotOfNowThatIsOverWasNotMissed) {
    const list all{"--missed", "all", "-v"};
    EXPECT_EQ(run(0, all).status, 0);
    const auto done = run(0.2, all);
    EXPECT_EQ(done.status, 0);
    EXPECT_NE(done.err.find(" is done, by "), std::string::npos) << done.err;
    EXPECT_EQ(run(0.5, all, "exit 7").status, 7);
    const auto failed = run(0.7, all);
    EXPECT_EQ(failed.status, 7) << "as recorded";
    EXPECT_NE(failed.err.find(" failed for good with status 7"), std::string::npos) << failed.err;
    const auto outlook = run(0.7, {"--missed", "all", "--dry-run"}).out;
    EXPECT_NE(outlook.find(" failed for good with status 7"), std::string::npos) << outlook;
    EXPECT_EQ(ran(), slots(1));
}

TEST_F(OnceMissed, WhoeverIsToldToEndBeginsNoOtherSlot) {
    EXPECT_EQ(run(0, {}).status, 0);
    process host_a(host(1, {"--missed", "all"}, "echo $DIBS_SLOT >> ran; exec sleep 100"));
    ASSERT_TRUE(eventually([&] { return ran().size() == 2; })) << host_a.err();
    host_a.signal(SIGTERM);
    EXPECT_EQ(host_a.wait().status, 143);
    EXPECT_EQ(ran(), slots(2));
    // It was interrupted, and so is run again, before what has not been begun.
    EXPECT_EQ(run(1, {"--missed", "all"}).status, 0);
    auto expected = slots(2);
    const auto rest = slots(2, 1);
    expected.insert(expected.end(), rest.begin(), rest.end());
    EXPECT_EQ(ran(), expected);
}

TEST_F(OnceMissed, WhenTheWholeOfItIsKilledTheSlotThatRunsIsStoppedAndFree) {
    EXPECT_EQ(run(0, {}).status, 0);
    process host_a(host(1, {"--missed", "all"}, "echo $DIBS_SLOT >> ran; exec sleep 100"));
    ASSERT_TRUE(eventually([&] { return ran().size() == 2; })) << host_a.err();
    host_a.signal(SIGKILL);
    (void)host_a.wait();
    EXPECT_EQ(run(1, {"--missed", "all", "--wait", "1m"}).status, 0);
    EXPECT_EQ(ran().size(), 4U);
}

TEST_F(OnceMissed, ASlotBegunWhileTheOneBeforeIsRunWaitsForItOrIsNotRun) {
    const list in_turn{"--overlap", "forbid"};
    process before(
        host(0, in_turn, "echo $DIBS_SLOT >> ran; until test -e go; do sleep 0.05; done"));
    ASSERT_TRUE(eventually([&] { return ran().size() == 1; })) << before.err();
    auto loud = in_turn;
    loud.push_back("-v");
    const auto skipped = run(0.5, loud);
    EXPECT_EQ(skipped.status, 0);
    EXPECT_NE(skipped.err.find("not run while another slot of its job is"), std::string::npos)
        << skipped.err;
    auto coded = in_turn;
    coded.insert(coded.end(), {"--held-code", "9"});
    EXPECT_EQ(run(0.5, coded).status, 9);
    auto looks = in_turn;
    looks.push_back("--condition");
    EXPECT_EQ(run(0.5, looks).status, 1);
    EXPECT_EQ(ran(), slots(1));
    // Whoever does not ask for it is not held up.
    EXPECT_EQ(run(1, {"--overlap", "allow"}).status, 0);
    EXPECT_EQ(ran(), (list{slots(1).front(), slots(1, 2).front()}));
    auto patient = in_turn;
    patient.insert(patient.end(), {"--wait", "1m"});
    process after(host(1.5, patient, "test -e go && echo $DIBS_SLOT >> ran"));
    write_file(here_.file("go"), "");
    EXPECT_EQ(before.wait().status, 0);
    EXPECT_EQ(after.wait().status, 0) << after.err();
    EXPECT_EQ(ran().back(), slots(1, 3).front());
    EXPECT_EQ(run(0.5, in_turn).status, 0) << "it was not recorded as run";
    EXPECT_EQ(ran().size(), 4U);
}

TEST_F(OnceMissed, TheEndOfTheOutputIsKeptAndAllOfItPassedOn) {
    const auto ended = run(0,
                           {"--keep-output", "21"},
                           "i=0; while [ $i -lt 9 ]; do echo line $i; i=$((i+1)); done; exit 4");
    EXPECT_EQ(ended.status, 4);
    EXPECT_EQ(ended.out.rfind("line 0\nline 1\n", 0), 0U) << ended.out;
    EXPECT_TRUE(ended.out.ends_with("line 8\n")) << ended.out;
    EXPECT_EQ(ended.err, "");
    const auto json = runs({"--json"});
    EXPECT_NE(json.find("\"output\": \"line 6\\nline 7\\nline 8\\n\""), std::string::npos) << json;
    const auto text = runs({"--output"});
    EXPECT_NE(text.find("attempt 1:\n    line 6\n    line 7\n    line 8\n"), std::string::npos)
        << text;
    EXPECT_EQ(runs({}).find("line 8"), std::string::npos);
    EXPECT_EQ(run(1, {}).status, 0);
    EXPECT_NE(runs({"--json"}).find("\"output\": null"), std::string::npos);
}

TEST_F(OnceMissed, BothStreamsGoWhereTheyWouldAndAreKept) {
    const auto ended = run(0, {"--keep-output", "1k"}, "echo to out; echo to err >&2");
    EXPECT_EQ(ended.out, "to out\n");
    EXPECT_EQ(ended.err, "to err\n");
    const auto text = runs({"--output"});
    EXPECT_NE(text.find("    to out\n"), std::string::npos) << text;
    EXPECT_NE(text.find("    to err\n"), std::string::npos) << text;
}

TEST_F(OnceMissed, OutputThatADescendantHoldsOpenHoldsNobodyUp) {
    const auto ended = run(0, {"--keep-output", "1k"}, "sleep 20 & echo done");
    EXPECT_EQ(ended.status, 0);
    EXPECT_EQ(ended.out, "done\n");
    EXPECT_NE(runs({"--output"}).find("    done\n"), std::string::npos);
}

TEST_F(OnceMissed, ACommandWhoseReaderHasGoneIsToldSo) {
    auto how = dibs_on(here_,
                       {"-c",
                        "{ \"$0\" once --slot s --keep-output 1k job -- yes; echo $? >\"$1\"; } | "
                        "head -n 1"});
    how.words.emplace_back(tests::places::command);
    how.words.push_back(here_.file("status"));
    how.program = "/bin/sh";
    EXPECT_EQ(process(how).wait().out, "y\n");
    EXPECT_EQ(read_file(here_.file("status")), std::to_string(128 + SIGPIPE) + "\n");
    EXPECT_NE(runs({"--output"}).find("    y\n"), std::string::npos);
}

TEST_F(OnceMissed, WhatMakesNoSenseIsRefused) {
    for (const auto& bad : std::vector<list>{{"--missed", "some"},
                                             {"--late", "5m"},
                                             {"--missed-max", "3"},
                                             {"--missed", "all", "--missed-max", "0"},
                                             {"--missed", "all", "--late", "5m"},
                                             {"--overlap", "maybe"},
                                             {"--keep-output", "0"},
                                             {"--keep-output", "17k"},
                                             {"--keep-output", "4m"}}) {
        const auto found = run(0, bad);
        EXPECT_EQ(found.status, 64) << found.err;
        EXPECT_EQ(std::count(found.err.begin(), found.err.end(), '\n'), 1) << found.err;
    }
    for (const auto& bad : std::vector<list>{{"--slot", "s", "--missed", "all"},
                                             {"--every", "day", "--missed", "none"}}) {
        list words{"once", "job"};
        words.insert(words.end(), bad.begin(), bad.end());
        words.insert(words.end(), {"--", "touch", "ran"});
        EXPECT_EQ(run_dibs(here_, words).status, 64);
    }
    EXPECT_EQ(ran(), list{});
    EXPECT_EQ(run_dibs(here_, {"runs", "--output"}).status, 64);
}

}  // namespace
}  // namespace dibs::testing
