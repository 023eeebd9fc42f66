// SPDX-License-Identifier: Apache-2.0
// dibs idempotent: requests that come several times, from several processes.
#include "support.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <list>
#include <string>
#include <vector>

namespace dibs::testing {
namespace {

using json = nlohmann::json;

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

/// A command that does it: each call is one line of `done`.
class Idempotent : public ::testing::Test {
  protected:
    void SetUp() override { does("echo paid $n"); }

    /// What the work does; $n is the number of the call.
    void does(const std::string& script) const {
        write_file(work,
                   "#!/bin/sh\necho \"$DIBS_IDEMPOTENCY_KEY attempt $DIBS_ATTEMPT\" >>" +
                       here.file("done") + "\nn=$(wc -l <" + here.file("done") + ")\n" + script +
                       "\n");
        ::chmod(work.c_str(), 0755);
    }
    [[nodiscard]] std::string calls() const {
        return exists(here.file("done")) ? read_file(here.file("done")) : "";
    }
    [[nodiscard]] std::vector<std::string> words(const std::vector<std::string>& more = {},
                                                 const std::string& payload = "5 euros") const {
        std::vector<std::string> all{"idempotent", "order-4711", "--fingerprint", payload};
        all.insert(all.end(), more.begin(), more.end());
        all.insert(all.end(), {"--", work});
        return all;
    }
    [[nodiscard]] outcome ask(const std::vector<std::string>& more = {},
                              const std::string& payload = "5 euros") const {
        return run_dibs(here, words(more, payload));
    }

    const folder here;
    const std::string work = here.file("work");
};

TEST_F(Idempotent, TheFirstOutputIsGivenAgain) {
    const auto first = ask();
    EXPECT_EQ(first.status, 0) << first.err;
    EXPECT_EQ(first.out, "paid 1\n");
    EXPECT_EQ(first.err, "");
    const auto again = ask();
    EXPECT_EQ(again.status, 0);
    EXPECT_EQ(again.out, "paid 1\n");
    EXPECT_EQ(again.err, "");
    EXPECT_EQ(calls(), "order-4711 attempt 1\n");
}

TEST_F(Idempotent, ManyProcessesAtOnceDoItOnce) {
    does("sleep 0.3; echo paid $n");
    std::list<process> all;
    for (int at = 0; at < 12; ++at) {
        all.emplace_back(dibs_on(here, words({"--wait", "forever"})));
    }
    for (auto& one : all) {
        const auto told = one.wait();
        EXPECT_EQ(told.status, 0) << told.err;
        EXPECT_EQ(told.out, "paid 1\n");
    }
    EXPECT_EQ(calls(), "order-4711 attempt 1\n");
}

TEST_F(Idempotent, AnotherPayloadIsRefused) {
    EXPECT_EQ(ask().status, 0);
    const auto other = ask({}, "6 euros");
    EXPECT_EQ(other.status, 65);
    EXPECT_EQ(other.out, "");
    EXPECT_TRUE(contains(other.err, "order-4711")) << other.err;
    EXPECT_EQ(calls(), "order-4711 attempt 1\n");
}

TEST_F(Idempotent, APayloadMayBeAFile) {
    write_file(here.file("body"), std::string("5\0euros", 7));
    write_file(here.file("other"), std::string("5\0cents", 7));
    const auto with = [&](const std::string& name) {
        return run_dibs(here,
                        {"idempotent", "k", "--fingerprint-file", here.file(name), "--", work});
    };
    EXPECT_EQ(with("body").status, 0);
    EXPECT_EQ(with("body").out, "paid 1\n");
    EXPECT_EQ(with("other").status, 65);
    EXPECT_EQ(with("none").status, 64);
}

TEST_F(Idempotent, AFailureIsTriedAgainUnlessItIsToBeKept) {
    does("echo declined $n; exit 3");
    EXPECT_EQ(ask().status, 3);
    const auto second = ask({"--keep-failures"});
    EXPECT_EQ(second.status, 3);
    EXPECT_EQ(second.out, "declined 2\n");
    const auto third = ask();
    EXPECT_EQ(third.status, 3);
    EXPECT_EQ(third.out, "declined 2\n");
    EXPECT_EQ(calls(), "order-4711 attempt 1\norder-4711 attempt 1\n");
}

TEST_F(Idempotent, WhoDoesNotWaitIsToldThatItIsBeingDone) {
    does("touch " + here.file("begun") + "; while [ ! -e " + here.file("go") +
         " ]; do sleep 0.02; done; echo paid $n");
    process first(dibs_on(here, words()));
    ASSERT_TRUE(eventually([&] { return exists(here.file("begun")); }));
    const auto other = ask();
    EXPECT_EQ(other.status, 75);
    EXPECT_TRUE(contains(other.err, "is being done")) << other.err;
    EXPECT_EQ(ask({"--held-code", "9"}).status, 9);
    // Another payload is told at once, not when the first one is done.
    EXPECT_EQ(ask({"--wait", "1m"}, "6 euros").status, 65);
    write_file(here.file("go"), "");
    EXPECT_EQ(first.wait().out, "paid 1\n");
}

TEST_F(Idempotent, AKillInTheMiddleLetsAnotherOneDoIt) {
    does("if [ $n = 1 ]; then touch " + here.file("begun") +
         "; while :; do sleep 0.05; done; fi; echo paid $n");
    process first(dibs_on(here, words({"--ttl", "1s"})));
    ASSERT_TRUE(eventually([&] { return exists(here.file("begun")); }));
    first.signal(SIGKILL);
    const auto second = ask({"--wait", "forever"});
    EXPECT_EQ(second.status, 0) << second.err;
    EXPECT_EQ(second.out, "paid 2\n");
    EXPECT_EQ(calls(), "order-4711 attempt 1\norder-4711 attempt 2\n");
}

TEST_F(Idempotent, AtMostOnceAKillInTheMiddleIsInDoubt) {
    does("touch " + here.file("begun") + "; while :; do sleep 0.05; done");
    process first(dibs_on(here, words({"--ttl", "1s", "--at-most-once"})));
    ASSERT_TRUE(eventually([&] { return exists(here.file("begun")); }));
    first.signal(SIGKILL);
    const auto second = ask({"--wait", "forever"});
    EXPECT_EQ(second.status, 77);
    EXPECT_TRUE(contains(second.err, "has not told how it ended")) << second.err;
    EXPECT_EQ(calls(), "order-4711 attempt 1\n");
}

TEST_F(Idempotent, AtMostOnceAFailureIsTheAnswer) {
    does("echo no line; exit 4");
    EXPECT_EQ(ask({"--at-most-once"}).status, 4);
    const auto again = ask({"--at-most-once"});
    EXPECT_EQ(again.status, 4);
    EXPECT_EQ(again.out, "no line\n");
    EXPECT_EQ(calls(), "order-4711 attempt 1\n");
}

TEST_F(Idempotent, ACommandThatCannotBeStartedLeavesNothing) {
    for (const auto* more : {"--keep-failures", "--at-most-once"}) {
        const auto none = run_dibs(
            here, {"idempotent", "k", "--fingerprint", "x", more, "--", "/no/such/command"});
        EXPECT_EQ(none.status, 127);
    }
    EXPECT_EQ(run_dibs(here, {"idempotent", "k", "--fingerprint", "y", "--", work}).status, 0);
}

TEST_F(Idempotent, OutputThatIsTooLongIsAFailureThatIsKept) {
    does("head -c 3000000 /dev/zero");
    const auto first = ask();
    EXPECT_EQ(first.status, 1);
    EXPECT_EQ(first.out.size(), 1U << 20);
    EXPECT_TRUE(contains(first.err, "longer than 1 MiB")) << first.err;
    const auto again = ask();
    EXPECT_EQ(again.status, 1);
    EXPECT_EQ(again.out, "");
    EXPECT_TRUE(contains(again.err, "longer than 1 MiB")) << again.err;
    EXPECT_EQ(calls(), "order-4711 attempt 1\n");
}

TEST_F(Idempotent, SomethingInTheBackgroundDoesNotHoldItUp) {
    does("sleep 100 & echo $! >" + here.file("left") + "; echo paid $n");
    const auto told = ask();
    EXPECT_EQ(told.out, "paid 1\n");
    const auto left = static_cast<pid_t>(std::stol(read_file(here.file("left"))));
    EXPECT_TRUE(is_running(left));
    ::kill(left, SIGKILL);
}

TEST_F(Idempotent, NeitherPayloadNorAnswerIsShown) {
    does("echo the answer");
    EXPECT_EQ(ask({}, "the payload").status, 0);
    for (const auto& words : std::vector<std::vector<std::string>>{
             {"show", "order-4711"}, {"show", "order-4711", "--json"}, {"ls", "--json"}}) {
        const auto told = run_dibs(here, words);
        EXPECT_EQ(told.status, 0);
        EXPECT_FALSE(contains(told.out, "the answer")) << told.out;
        EXPECT_FALSE(contains(told.out, "the payload")) << told.out;
    }
    EXPECT_TRUE(contains(run_dibs(here, {"show", "order-4711"}).out, "idempotent"));
}

TEST_F(Idempotent, TheStatusFileTellsWhatHappened) {
    const auto report = [&] { return json::parse(read_file(here.file("report"))); };
    EXPECT_EQ(ask({"--status-file", here.file("report")}).status, 0);
    EXPECT_EQ(report()["outcome"], "child");
    EXPECT_EQ(ask({"--status-file", here.file("report")}).status, 0);
    EXPECT_EQ(report()["outcome"], "done");
    EXPECT_EQ(ask({"--status-file", here.file("report")}, "other").status, 65);
    EXPECT_EQ(report()["status"], 65);
}

TEST_F(Idempotent, WrongOptionsAreRefused) {
    const auto refused = [&](std::vector<std::string> words) {
        words.insert(words.begin(), "idempotent");
        words.insert(words.end(), {"--", work});
        const auto told = run_dibs(here, words);
        EXPECT_EQ(told.status, 64) << told.err;
        return told.err;
    };
    EXPECT_TRUE(contains(refused({"k"}), "--fingerprint"));
    EXPECT_TRUE(contains(refused({"--fingerprint", "x"}), "missing"));
    EXPECT_TRUE(
        contains(refused({"k", "--fingerprint", "x", "--fingerprint-file", here.file("work")}),
                 "contradict"));
    EXPECT_TRUE(contains(refused({"k", "--fingerprint", "x", "--keep", "0s"}), "--keep"));
    EXPECT_EQ(calls(), "");
}

}  // namespace
}  // namespace dibs::testing
