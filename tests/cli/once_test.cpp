// SPDX-License-Identifier: Apache-2.0
// dibs once and dibs runs: what they exit with, what they run, and what they tell.
#include "support.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>
#include <memory>
#include <string>
#include <vector>

namespace dibs::testing {
namespace {

using list = std::vector<std::string>;

std::size_t lines_of(const std::string& path) {
    if (!exists(path)) {
        return 0;
    }
    const auto text = read_file(path);
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

outcome once(const folder& here, list options, list command = {"sh", "-c", "echo ran >> ran"}) {
    list words{"once"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"job", "--"});
    words.insert(words.end(), command.begin(), command.end());
    return run_dibs(here, words);
}

/// Runs the slot "s" until told to end.
class running {
  public:
    explicit running(const folder& here, list options = {})
        : here_(here), command_(how(here, std::move(options))) {
        EXPECT_TRUE(eventually([&] { return lines_of(here.file("begun")) > 0; })) << command_.err();
    }
    /// The job ends with this status.
    void end(int status) {
        write_file(here_.file("go"), std::to_string(status) + "\n");
        EXPECT_EQ(command_.wait().status, status);
    }
    void crash() {
        command_.signal(SIGKILL);
        (void)command_.wait();
    }

  private:
    static launch how(const folder& here, list options) {
        list words{"once", "--slot", "s", "--ttl", "3s"};
        words.insert(words.end(), options.begin(), options.end());
        words.insert(
            words.end(),
            {"job",
             "--",
             "sh",
             "-c",
             "echo begun >> begun; until test -s go; do sleep 0.05; done; exit $(cat go)"});
        return dibs_on(here, words);
    }
    const folder& here_;
    process command_;
};

TEST(Once, ALaterCallFindsTheSlotDoneAndIsSilent) {
    const folder here;
    EXPECT_EQ(once(here, {"--slot", "s"}).status, 0);
    const auto late = once(here, {"--slot", "s"});
    EXPECT_EQ(late.status, 0);
    EXPECT_EQ(late.out + late.err, "");
    EXPECT_EQ(lines_of(here.file("ran")), 1U);
    EXPECT_NE(once(here, {"--slot", "s", "-v"}).err.find("is done"), std::string::npos);
    EXPECT_EQ(once(here, {"--slot", "t"}).status, 0);
    EXPECT_EQ(lines_of(here.file("ran")), 2U) << "another slot is another run";
}

TEST(Once, OfThreeThatFireTogetherOneRuns) {
    const folder here;
    std::vector<std::unique_ptr<process>> all;
    for (int number = 0; number < 3; ++number) {
        all.push_back(std::make_unique<process>(dibs_on(
            here,
            {"once", "job", "--every", "week", "--", "sh", "-c", "echo ran >> ran; sleep 0.3"})));
    }
    for (const auto& one : all) {
        const auto ended = one->wait();
        EXPECT_EQ(ended.status, 0);
        EXPECT_EQ(ended.out + ended.err, "");
    }
    EXPECT_EQ(lines_of(here.file("ran")), 1U);
}

TEST(Once, WhileItRunsElsewhereThereIsNothingToDo) {
    const folder here;
    running other(here);
    const auto skipped = once(here, {"--slot", "s"});
    EXPECT_EQ(skipped.status, 0);
    EXPECT_EQ(skipped.out + skipped.err, "");
    EXPECT_EQ(once(here, {"--slot", "s", "--held-code", "9"}).status, 9);
    const auto waited = once(here, {"--slot", "s", "--wait", "200ms"});
    EXPECT_EQ(waited.status, 75);
    EXPECT_NE(waited.err.find("waited"), std::string::npos) << waited.err;
    EXPECT_EQ(lines_of(here.file("ran")), 0U);
    other.end(0);
}

TEST(Once, AWaiterIsToldHowItEnded) {
    for (const int status : {0, 3}) {
        const folder here;
        running other(here);
        process waits(
            dibs_on(here, {"once", "--slot", "s", "--wait", "1m", "job", "--", "touch", "ran"}));
        other.end(status);
        EXPECT_EQ(waits.wait().status, status);
        EXPECT_FALSE(exists(here.file("ran")));
    }
}

TEST(Once, AFailureIsTheChildsStatusAndFinal) {
    const folder here;
    EXPECT_EQ(once(here, {"--slot", "s"}, {"sh", "-c", "exit 7"}).status, 7);
    const auto again = once(here, {"--slot", "s"});
    EXPECT_EQ(again.status, 7);
    EXPECT_EQ(again.err, "");
    EXPECT_EQ(lines_of(here.file("ran")), 0U);
}

TEST(Once, ByOrderItIsRunAgain) {
    const folder here;
    EXPECT_EQ(once(here, {"--every", "day"}, {"sh", "-c", "exit 7"}).status, 7);
    const auto slot = run_dibs(here, {"runs", "job", "--json"}).out;
    const auto name = nlohmann::json::parse(slot).at(0).at("slot").get<std::string>();
    const auto outlook = [&](list options) { return once(here, std::move(options)).out; };
    EXPECT_NE(outlook({"--slot", name, "--dry-run"}).find("would run   no"), std::string::npos);
    EXPECT_NE(outlook({"--slot", name, "--again", "--dry-run"}).find("would run   yes"),
              std::string::npos);
    EXPECT_EQ(once(here, {"--slot", name, "--again"}).status, 0);
    EXPECT_EQ(lines_of(here.file("ran")), 1U);
    EXPECT_EQ(once(here, {"--every", "day"}).status, 0);
    EXPECT_EQ(lines_of(here.file("ran")), 1U) << "done";
    EXPECT_EQ(once(here, {"--every", "day", "--again"}).status, 0);
    EXPECT_EQ(lines_of(here.file("ran")), 2U);
    EXPECT_EQ(once(here, {"--every", "day", "--again", "--missed", "all"}).status, 64);
}

TEST(Once, WithRetriesAFailureIsRunAgainAfterTheBackOff) {
    const folder here;
    const list patient{"--slot", "s", "--retries", "1", "--backoff", "1s"};
    EXPECT_EQ(once(here, patient, {"sh", "-c", "exit 7"}).status, 7);
    EXPECT_EQ(once(here, patient).status, 75);
    EXPECT_EQ(lines_of(here.file("ran")), 0U);
    auto waiting = patient;
    waiting.insert(waiting.end(), {"--wait", "20s"});
    EXPECT_EQ(once(here, waiting, {"sh", "-c", "echo $DIBS_ATTEMPT >> ran; exit 8"}).status, 8);
    EXPECT_EQ(read_file(here.file("ran")), "2\n");
    EXPECT_EQ(once(here, waiting).status, 8) << "the retries are used up";
}

TEST(Once, AfterAKillInTheMiddleAnotherHostRunsItAgain) {
    const folder here;
    running other(here);
    other.crash();
    EXPECT_EQ(
        once(here, {"--slot", "s", "--wait", "20s"}, {"sh", "-c", "echo $DIBS_ATTEMPT >> ran"})
            .status,
        0);
    EXPECT_EQ(read_file(here.file("ran")), "2\n");
}

TEST(Once, AtMostOnceIsNotRunAgainAfterAKill) {
    const folder here;
    running other(here, {"--at-most-once"});
    other.crash();
    const auto found = once(here, {"--slot", "s", "--at-most-once", "--wait", "20s"});
    EXPECT_EQ(found.status, 1) << found.err;
    EXPECT_NE(found.err.find("never ended"), std::string::npos) << found.err;
    EXPECT_EQ(once(here, {"--slot", "s"}).status, 1);
    EXPECT_EQ(lines_of(here.file("ran")), 0U);
}

TEST(Once, WhoWaitsRunsASlotWhoseRunLostItsLease) {
    const folder here;
    process frozen(dibs_on(
        here,
        {"once", "--slot", "s", "--ttl", "1s", "job", "--", "sh", "-c", "echo x > x; sleep 100"}));
    ASSERT_TRUE(eventually([&] { return lines_of(here.file("x")) == 1; })) << frozen.err();
    frozen.signal(SIGSTOP);  // nobody renews
    EXPECT_EQ(
        once(here, {"--slot", "s", "--wait", "20s"}, {"sh", "-c", "echo $DIBS_ATTEMPT >> ran"})
            .status,
        0);
    EXPECT_EQ(read_file(here.file("ran")), "2\n");
    frozen.signal(SIGCONT);
    EXPECT_EQ(frozen.wait().status, 79) << frozen.err();
    const auto kept = run_dibs(here, {"runs", "job", "--json"}).out;
    EXPECT_NE(kept.find("\"outcome\": \"done\""), std::string::npos) << kept;
    EXPECT_NE(kept.find("\"attempt\": 2"), std::string::npos) << kept;
}

TEST(Once, StopsAtMaxRuntimeAndThatIsAFailure) {
    const folder here;
    EXPECT_EQ(once(here, {"--slot", "s", "--max-runtime", "200ms"}, {"sleep", "100"}).status, 124);
    EXPECT_EQ(once(here, {"--slot", "s"}).status, 124);
    EXPECT_EQ(once(here, {"--slot", "t"}, {"no-such-command"}).status, 127);
}

TEST(Once, TheCommandKnowsItsSlot) {
    const folder here;
    ASSERT_EQ(once(here,
                   {"--slot", "2026-11"},
                   {"sh",
                    "-c",
                    "echo $DIBS_JOB $DIBS_SLOT $DIBS_ATTEMPT $DIBS_IDEMPOTENCY_KEY > vars; "
                    "test $DIBS_FENCE -gt 0"})
                  .status,
              0);
    EXPECT_EQ(read_file(here.file("vars")), "job 2026-11 1 job/2026-11\n");
}

TEST(Once, TheStatusFileTellsWhatBecameOfIt) {
    const folder here;
    ASSERT_EQ(once(here, {"--slot", "s", "--status-file", here.file("1")}).status, 0);
    ASSERT_EQ(once(here, {"--slot", "s", "--status-file", here.file("2")}).status, 0);
    EXPECT_NE(read_file(here.file("1")).find("\"outcome\": \"child\""), std::string::npos);
    EXPECT_NE(read_file(here.file("2")).find("\"outcome\": \"done\""), std::string::npos);
}

TEST(Once, TellsInAdvanceWhatItWouldDo) {
    const folder here;
    const auto before = run_dibs(here, {"once", "job", "--slot", "s", "--dry-run"});
    EXPECT_EQ(before.status, 0);
    EXPECT_NE(before.out.find("would run   yes"), std::string::npos) << before.out;
    EXPECT_EQ(run_dibs(here, {"once", "job", "--slot", "s", "--condition"}).status, 0);
    EXPECT_EQ(once(here, {"--slot", "s"}).status, 0);
    EXPECT_EQ(lines_of(here.file("ran")), 1U) << "looking had run nothing";
    const auto after = run_dibs(here, {"once", "job", "--slot", "s", "--dry-run"});
    EXPECT_NE(after.out.find("would run   no"), std::string::npos) << after.out;
    EXPECT_EQ(run_dibs(here, {"once", "job", "--slot", "s", "--condition"}).status, 1);
    EXPECT_EQ(run_dibs(here, {"once", "job", "--every", "7m", "--condition"}).status, 255);
}

TEST(Once, RefusesWhatMakesNoSense) {
    const folder here;
    for (const auto& bad : std::vector<list>{{},
                                             {"--slot", "s", "--every", "day"},
                                             {"--slot", "a@b"},
                                             {"--slot", ""},
                                             {"--slot", "s", "--tz", "UTC"},
                                             {"--every", "fortnight"},
                                             {"--every", "day", "--tz", "Nowhere"},
                                             {"--every", "day", "--keep", "1h"},
                                             {"--every", "15m", "--skew", "10m"},
                                             {"--cron", "0 3 * *"},
                                             {"--cron", "0 25 * * *"},
                                             {"--cron", "@daily", "--slot", "s"},
                                             {"--cron", "@daily", "--tz", "Nowhere"},
                                             {"--cron", "*/5 * * * *", "--skew", "3m"},
                                             {"--every", "15m", "--keep", "59m"},
                                             {"--slot", "s", "--keep", "0s"},
                                             {"--slot", "s", "--keep", "1s"},
                                             {"--slot", "s", "--keep", "59m"},
                                             {"--slot", "s", "--keep", "-1h"},
                                             {"--slot", "s", "--at-most-once", "--keep", "400d"},
                                             {"--slot", "s", "--retries", "-1"},
                                             {"--slot", "s", "--retries", "x"},
                                             {"--slot", "s", "--at-most-once", "--retries", "1"},
                                             {"--slot", "s", "--ttl", "1ms"}}) {
        const auto found = once(here, bad);
        EXPECT_EQ(found.status, 64) << found.err;
        EXPECT_EQ(std::count(found.err.begin(), found.err.end(), '\n'), 1) << found.err;
    }
    EXPECT_EQ(lines_of(here.file("ran")), 0U);
    EXPECT_EQ(run_dibs(here, {"once", "--slot", "s"}).status, 64);
    EXPECT_EQ(run_dibs(here, {"once", "job", "--slot", "s"}).status, 64);
}

TEST(Once, ACronExpressionNamesTheSlotByItsLastTime) {
    const folder here;
    const list yearly{"--cron", "@yearly", "--tz", "Asia/Tokyo"};
    EXPECT_EQ(once(here, yearly, {"sh", "-c", "echo $DIBS_SLOT >> ran"}).status, 0);
    EXPECT_EQ(once(here, yearly, {"sh", "-c", "echo $DIBS_SLOT >> ran"}).status, 0);
    EXPECT_EQ(lines_of(here.file("ran")), 1U);
    EXPECT_EQ(read_file(here.file("ran")).substr(4), "-01-01T00:00[Asia/Tokyo]\n");
    const auto shown =
        run_dibs(here, {"once", "job", "--dry-run", "--cron", "0 3 * * mon-fri"}).out;
    EXPECT_NE(shown.find("T03:00[UTC]\n"), std::string::npos) << shown;
    EXPECT_NE(shown.find("would run   yes"), std::string::npos) << shown;
    const auto refused = once(here, {"--cron", "0 3 * * mon-8"});
    EXPECT_NE(refused.err.find("day of the week"), std::string::npos) << refused.err;
}

/// Thirty-six times of a job every five minutes, fired late and together by three hosts, out of
/// order and some of them twice.
TEST(Once, AFloodOfLateTriggersRunsTheSlotOfNowOnceAndEachNamedSlotOnce) {
    const folder here;
    const auto flood = [&](auto options_of) {
        for (int turn = 0; turn < 13; ++turn) {
            std::vector<std::unique_ptr<process>> hosts;
            for (int host = 0; host < 3; ++host) {
                list words{"once", "job"};
                const auto options = options_of((turn * 3 + host) * 23 % 36);
                words.insert(words.end(), options.begin(), options.end());
                words.insert(words.end(), {"--", "sh", "-c", "echo $DIBS_SLOT >> ran"});
                hosts.push_back(std::make_unique<process>(dibs_on(here, words)));
            }
            for (const auto& host : hosts) {
                EXPECT_EQ(host->wait().status, 0);
            }
        }
    };
    flood([](int) { return list{"--every", "week"}; });
    EXPECT_EQ(lines_of(here.file("ran")), 1U) << "the latest alone";
    flood([](int number) { return list{"--slot", "2026-11-29T" + std::to_string(number)}; });
    EXPECT_EQ(lines_of(here.file("ran")), 1U + 36U) << "all, each once";
}

TEST(Once, AfterAnyEndTheNextSlotRuns) {
    const folder here;
    EXPECT_EQ(once(here, {"--slot", "1"}, {"sh", "-c", "exit 1"}).status, 1);
    EXPECT_EQ(once(here, {"--slot", "2"}, {"sh", "-c", "kill -9 $$"}).status, 128 + SIGKILL);
    EXPECT_EQ(once(here, {"--slot", "3"}, {"no-such-command"}).status, 127);
    process lost(dibs_on(
        here,
        {"once", "--slot", "4", "--ttl", "1s", "job", "--", "sh", "-c", "echo x > x; sleep 100"}));
    ASSERT_TRUE(eventually([&] { return exists(here.file("x")); })) << lost.err();
    lost.signal(SIGSTOP);
    ASSERT_TRUE(eventually([&] {
        return run_dibs(here, {"runs", "job"}).out.find("never ended") != std::string::npos;
    }));
    lost.signal(SIGCONT);
    EXPECT_EQ(lost.wait().status, 79);
    const auto runs = run_dibs(here, {"runs", "job"}).out;
    EXPECT_NE(runs.find(" lost "), std::string::npos) << runs;
    EXPECT_EQ(once(here, {"--slot", "4"}).status, 79) << "it has failed for good";
    EXPECT_EQ(once(here, {"--slot", "5"}).status, 0);
    EXPECT_EQ(lines_of(here.file("ran")), 1U);
}

TEST(Runs, ListWhoRanWhatAndWhoSkipped) {
    const folder here;
    EXPECT_EQ(run_dibs(here, {"runs", "job"}).out, "");
    ASSERT_EQ(once(here, {"--slot", "one"}).status, 0);
    ASSERT_EQ(once(here, {"--slot", "one"}).status, 0);  // a skip
    ASSERT_EQ(once(here, {"--slot", "two"}, {"sh", "-c", "exit 5"}).status, 5);
    ASSERT_EQ(run_dibs(here, {"once", "job@x", "--slot", "one", "true"}).status, 0);
    const auto text = run_dibs(here, {"runs", "job"});
    EXPECT_EQ(text.status, 0);
    EXPECT_EQ(std::count(text.out.begin(), text.out.end(), '\n'), 3) << text.out;
    const auto machine = run_dibs(here, {"runs", "job", "--json"}).out;
    for (const auto* part : {"\"slot\": \"one\"",
                             "\"outcome\": \"done\"",
                             "\"outcome\": \"failed\"",
                             "\"status\": 5",
                             "\"took_ms\": ",
                             "\"skipped_by\": [\n      {"}) {
        EXPECT_NE(machine.find(part), std::string::npos) << part << " in " << machine;
    }
}

TEST(Runs, ListAllJobsWithTheSlotThatWasStartedLast) {
    const folder here;
    ASSERT_EQ(once(here, {"--slot", "z-first"}).status, 0);
    ASSERT_EQ(once(here, {"--slot", "a-second"}, {"sh", "-c", "exit 5"}).status, 5);
    ASSERT_EQ(run_dibs(here, {"once", "job@x", "--slot", "one", "true"}).status, 0);
    ASSERT_EQ(run_dibs(here, {"once", "job@x", "--slot", "one", "true"}).status, 0);  // a skip
    ASSERT_EQ(run_dibs(here, {"run", "no-job", "true"}).status, 0);
    const auto text = run_dibs(here, {"runs"});
    EXPECT_EQ(text.status, 0) << text.err;
    EXPECT_EQ(std::count(text.out.begin(), text.out.end(), '\n'), 3) << text.out;
    const auto job = text.out.find("\njob  ");
    ASSERT_NE(job, std::string::npos) << text.out;
    EXPECT_EQ(text.out.find("a-second"), text.out.find_first_not_of(' ', job + 4)) << text.out;
    EXPECT_EQ(text.out.find("z-first"), std::string::npos) << text.out;
    const auto machine = run_dibs(here, {"runs", "--json"}).out;
    for (const auto* part : {"\"job\": \"job\"",
                             "\"slot\": \"a-second\"",
                             "\"outcome\": \"failed\"",
                             "\"status\": 5",
                             "\"slots\": 2",
                             "\"job\": \"job@x\"",
                             "\"slots\": 1"}) {
        EXPECT_NE(machine.find(part), std::string::npos) << part << " in " << machine;
    }
}

TEST(Runs, EndWithTheStatusesThatTheyName) {
    const folder here;
    const auto on = [&](list words) {
        auto how = dibs_on(here, std::move(words));
        how.cwd = here.path();
        return process(how).wait().status;
    };
    EXPECT_EQ(once(here, {"--slot", "s"}).status, 0);
    EXPECT_EQ(on({"runs", "nobody"}), 0);
    EXPECT_EQ(on({"runs", ""}), 64);
    EXPECT_EQ(on({"runs", "a", "b"}), 64);
    write_file(here.file("no-store"), std::string(4096, 'x'));
    EXPECT_EQ(on({"runs", "--store", "sqlite:" + here.file("no-store")}), 78);
    EXPECT_EQ(on({"runs", "--store", "sqlite:" + here.path()}), 78);
}

TEST(Once, EndsWithTheStatusesThatItNames) {
    const folder here;
    // 78, before anything is run
    write_file(here.file("no-store"), std::string(4096, 'x'));
    EXPECT_EQ(once(here, {"--slot", "s", "--store", "sqlite:" + here.file("no-store")}).status, 78);
    // 126 and 127, both final
    write_file(here.file("plain"), "no program");
    EXPECT_EQ(once(here, {"--slot", "126"}, {here.file("plain")}).status, 126);
    EXPECT_EQ(once(here, {"--slot", "126"}).status, 126);
    EXPECT_EQ(once(here, {"--slot", "127"}, {here.file("none")}).status, 127);
    EXPECT_EQ(once(here, {"--slot", "127"}).status, 127);
    // The key of a slot that is done is done for dibs run, too.
    EXPECT_EQ(once(here, {"--slot", "done"}).status, 0);
    const auto run = run_dibs(here, {"run", "-v", "job@done", "touch", "touched"});
    EXPECT_EQ(run.status, 75);
    EXPECT_NE(run.err.find("is done"), std::string::npos) << run.err;
    EXPECT_FALSE(exists(here.file("touched")));
    // The wait is over.
    running other(here);
    EXPECT_EQ(once(here, {"--slot", "s", "--wait", "100ms", "--held-code", "9"}).status, 9);
    other.end(0);
}

TEST(Once, ASignalWhileItWaitsEndsTheWaitAlone) {
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
        const folder here;
        running other(here);
        process waits(
            dibs_on(here, {"once", "--slot", "s", "--wait", "1h", "job", "touch", "ran"}));
        ASSERT_TRUE(eventually([&] {
            return run_dibs(here, {"ls", "--json"}).out.find("\"waiters\": 1") != std::string::npos;
        }));
        waits.signal(signal);
        EXPECT_EQ(waits.wait().status, 128 + signal);
        EXPECT_NE(run_dibs(here, {"runs", "job"}).out.find("running"), std::string::npos);
        other.end(0);
        EXPECT_FALSE(exists(here.file("ran")));
    }
}

TEST(Once, SettingsThatAreRefusedAreReported) {
    const folder here;
    EXPECT_EQ(once(here, {"--slot", "a@b", "--status-file", here.file("report")}).status, 64);
    EXPECT_NE(read_file(here.file("report")).find("\"outcome\": \"invalid\""), std::string::npos);
}

TEST(Runs, TellARunFromACrash) {
    const folder here;
    running other(here);
    EXPECT_NE(run_dibs(here, {"runs", "job"}).out.find("running"), std::string::npos);
    other.crash();
    EXPECT_TRUE(eventually([&] {
        return run_dibs(here, {"runs", "job"}).out.find("never ended") != std::string::npos;
    }));
}

// --- elect -------------------------------------------------------------------------------------

launch candidate(const folder& here, const std::string& name) {
    return dibs_on(here,
                   {"elect",
                    "--ttl",
                    "3s",
                    "k",
                    "--",
                    "sh",
                    "-c",
                    "echo $DIBS_TERM > " + name + "; until test -s end-" + name +
                        "; do sleep 0.05; done; exit 4"});
}

TEST(Elect, AStandbyTakesOverFromAKilledLeaderWithALaterTerm) {
    const folder here;
    process first(candidate(here, "a"));
    ASSERT_TRUE(eventually([&] { return lines_of(here.file("a")) == 1; })) << first.err();
    process second(candidate(here, "b"));
    EXPECT_FALSE(
        eventually([&] { return exists(here.file("b")); }, std::chrono::milliseconds{500}));
    first.signal(SIGKILL);
    ASSERT_TRUE(eventually([&] { return lines_of(here.file("b")) == 1; })) << second.err();
    EXPECT_GT(std::stoull(read_file(here.file("b"))), std::stoull(read_file(here.file("a"))));
    write_file(here.file("end-b"), "x");
    EXPECT_EQ(second.wait().status, 4) << "the command's own status";
}

TEST(Elect, ALeaderThatEndsResignsAtOnce) {
    const folder here;
    process first(candidate(here, "a"));
    ASSERT_TRUE(eventually([&] { return lines_of(here.file("a")) == 1; })) << first.err();
    process second(candidate(here, "b"));
    write_file(here.file("end-a"), "x");
    EXPECT_EQ(first.wait().status, 4);
    EXPECT_TRUE(eventually([&] { return lines_of(here.file("b")) == 1; })) << second.err();
    second.signal(SIGTERM);
    EXPECT_EQ(second.wait().status, 128 + SIGTERM);
}

TEST(Once, TheStoreMayBeAnOptionOfItsOwn) {
    const folder here;
    const auto url =
        "sqlite:" + here.file("a-store-with-a-name-that-is-long-enough-to-be-allocated");
    EXPECT_EQ(once(here, {"--slot", "s", "--store", url}).status, 0);
    EXPECT_EQ(once(here, {"--slot", "s", "--store=" + url}).status, 0);
    EXPECT_EQ(lines_of(here.file("ran")), 1U);
    const auto looked = run_dibs(here, {"once", "job", "--slot", "s", "--dry-run", "--store", url});
    EXPECT_EQ(looked.status, 0) << looked.err;
    EXPECT_TRUE(exists(here.file("a-store-with-a-name-that-is-long-enough-to-be-allocated")));
}

TEST(Once, AHoldOnTheJobHoldsItsSlots) {
    const folder here;
    ASSERT_EQ(run_dibs(here, {"hold", "job", "--for", "1h", "--reason", "moving house"}).status, 0);
    const auto refused = once(here, {"--every", "day", "-v"});
    EXPECT_EQ(refused.status, 75);
    EXPECT_NE(refused.err.find("moving house"), std::string::npos) << refused.err;
    EXPECT_FALSE(exists(here.file("ran")));
    const auto looked = run_dibs(here, {"once", "job", "--every", "day", "--dry-run"});
    EXPECT_NE(looked.out.find("would run   no"), std::string::npos) << looked.out;
    EXPECT_NE(looked.out.find("moving house"), std::string::npos) << looked.out;
    ASSERT_EQ(run_dibs(here, {"hold", "job", "--lift"}).status, 0);
    EXPECT_EQ(once(here, {"--every", "day"}).status, 0);
    EXPECT_EQ(lines_of(here.file("ran")), 1U);
}

}  // namespace
}  // namespace dibs::testing
