// SPDX-License-Identifier: Apache-2.0
// dibs show, check, hold and break: what an operator sees of a key, and may do to it.
#include "support.hpp"
#include "support/places.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <pty.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <regex>
#include <string>
#include <vector>

namespace dibs::testing {
namespace {

using json = nlohmann::json;

json shown(const folder& here, const std::string& key) {
    return json::parse(run_dibs(here, {"show", key, "--json"}).out);
}

/// A `dibs run` that holds the key and told its fence.
class busy {
  public:
    busy(const folder& here, const std::string& key)
        : run_(dibs_on(here, {"run", key, "sh", "-c", "echo $DIBS_FENCE; exec sleep 300"})) {
        EXPECT_TRUE(eventually([&] { return run_.out().ends_with('\n'); })) << run_.err();
        fence_ = run_.out().substr(0, run_.out().size() - 1);
    }
    [[nodiscard]] const std::string& fence() const { return fence_; }
    [[nodiscard]] process& run() { return run_; }
    void stop() {
        run_.signal(SIGTERM);
        run_.wait();
    }

  private:
    process run_;
    std::string fence_;
};

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

TEST(Show, TellsTheHolderInFull) {
    const folder here;
    busy holder(here, "report");
    process waiting(dibs_on(here, {"run", "report", "--wait", "forever", "true"}));
    ASSERT_TRUE(eventually([&] { return shown(here, "report")["waiters"] == 1; }));
    const auto told = run_dibs(here, {"show", "report"});
    EXPECT_EQ(told.status, 0);
    for (const auto& part : {std::string("report"),
                             "pid " + std::to_string(holder.run().id()),
                             holder.fence(),
                             std::string("sleep 300"),
                             std::string("since"),
                             std::string("waiters     1"),
                             std::string("with its process"),
                             here.store(),
                             std::string("this host, this user")}) {
        EXPECT_TRUE(contains(told.out, part)) << part << " in\n" << told.out;
    }
    EXPECT_FALSE(contains(told.out, "(you)")) << told.out;
    const auto record = shown(here, "report");
    EXPECT_EQ(record["holders"][0]["pid"], holder.run().id());
    EXPECT_EQ(record["held_by_you"], false);
    EXPECT_EQ(record["scope"], "this host, this user");
    holder.stop();
    EXPECT_EQ(waiting.wait().status, 0);
}

TEST(Show, TellsThatAFileOfSeveralUsersExcludesThemAll) {
    const folder here;
    write_file(here.file("locks.db"), "");
    ASSERT_EQ(::chmod(here.file("locks.db").c_str(), 0660), 0);
    ASSERT_EQ(run_dibs(here, {"run", "report", "true"}).status, 0);
    EXPECT_EQ(shown(here, "report")["scope"], "this host, all users who may write the file");
}

TEST(Show, SaysWhenItIsYou) {
    const folder here;
    const auto inside = run_dibs(here, {"run", "report", tests::places::command, "show", "report"});
    EXPECT_TRUE(contains(inside.out, "(you)")) << inside.out << inside.err;
    // Without the environment, by descent.
    const auto bare = run_dibs(
        here,
        {"run", "report", "env", "-u", "DIBS_HELD_KEYS", tests::places::command, "show", "report"});
    EXPECT_TRUE(contains(bare.out, "(you)")) << bare.out << bare.err;
}

TEST(Show, OfAKeyThatNobodyEverHeld) {
    const folder here;
    ASSERT_EQ(run_dibs(here, {"run", "other", "true"}).status, 0);
    const auto told = run_dibs(here, {"show", "nothing"});
    EXPECT_EQ(told.status, 0) << told.err;
    EXPECT_TRUE(contains(told.out, "nobody")) << told.out;
    EXPECT_EQ(shown(here, "nothing")["holders"], json::array());
    // A key that is only the beginning of another one is another key.
    busy holder(here, "nothing:at:all");
    EXPECT_EQ(shown(here, "nothing")["holders"], json::array());
    holder.stop();
}

TEST(Check, CurrentStaleAndTroubleDiffer) {
    const folder here;
    busy holder(here, "report");
    EXPECT_EQ(run_dibs(here, {"check", "report", "--fence", holder.fence()}).status, 0);
    const auto older = std::to_string(std::stoull(holder.fence()) - 1);
    const auto stale = run_dibs(here, {"check", "report", "--fence", older});
    EXPECT_EQ(stale.status, 1);
    EXPECT_TRUE(contains(stale.err, "held by")) << stale.err;
    const auto told =
        json::parse(run_dibs(here, {"check", "report", "--fence", holder.fence(), "--json"}).out);
    EXPECT_EQ(told["current"], true);
    holder.stop();
    EXPECT_EQ(run_dibs(here, {"check", "report", "--fence", holder.fence()}).status, 1);
    EXPECT_EQ(run_dibs(here, {"check", "report"}).status, 64);
    EXPECT_EQ(run_dibs(here, {"check", "report", "--fence", "x"}).status, 64);
    EXPECT_EQ(run_dibs(here, {"check", "report", "--fence", "0"}).status, 64);
    EXPECT_EQ(run_dibs(here, {"check", "report", "--fence", "1", "--store", "sqlite:/"}).status,
              78);
}

TEST(Hold, NobodyMayAcquireAndTheReasonIsTold) {
    const folder here;
    const auto set =
        run_dibs(here, {"hold", "report", "--for", "2h", "--reason", "migration, ask Ada"});
    EXPECT_EQ(set.status, 0) << set.err;
    EXPECT_EQ(set.out + set.err, "");
    const auto refused = run_dibs(here, {"run", "-v", "report", "true"});
    EXPECT_EQ(refused.status, 75);
    EXPECT_TRUE(contains(refused.err, "migration, ask Ada")) << refused.err;
    const auto idempotent =
        run_dibs(here, {"idempotent", "report", "--fingerprint", "x", "--", "true"});
    EXPECT_EQ(idempotent.status, 75);
    EXPECT_TRUE(contains(idempotent.err, "\"report\" is on hold until ")) << idempotent.err;
    for (const auto& words : std::vector<std::vector<std::string>>{{"run", "-v", "report", "true"},
                                                                   {"acquire", "-v", "report"}}) {
        auto how = dibs_on(here, words);
        how.variables["TZ"] = "XYZ-3";
        const auto told = process(how).wait();
        EXPECT_EQ(told.status, 75);
        EXPECT_TRUE(std::regex_search(
            told.err,
            std::regex(R"("report" is on hold until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d XYZ )"
                       R"(\(1 h 59 min left\): migration, ask Ada \(by [^@ ]+@[^ ]+\); store )")))
            << told.err;
        EXPECT_TRUE(contains(told.err, here.store())) << told.err;
        EXPECT_TRUE(contains(told.err, "`dibs hold report --lift`")) << told.err;
        EXPECT_EQ(std::count(told.err.begin(), told.err.end(), '\n'), 1) << told.err;
    }
    EXPECT_EQ(run_dibs(here, {"acquire", "report"}).status, 75);
    EXPECT_TRUE(contains(run_dibs(here, {"ls"}).out, "migration, ask Ada"));
    EXPECT_TRUE(contains(run_dibs(here, {"show", "report"}).out, "migration, ask Ada"));
    EXPECT_GT(shown(here, "report")["blocked_for_ms"], 7'000'000);

    EXPECT_EQ(run_dibs(here, {"hold", "report", "--lift"}).status, 0);
    EXPECT_EQ(run_dibs(here, {"run", "report", "true"}).status, 0);
    EXPECT_EQ(run_dibs(here, {"hold", "report", "--lift"}).status, 0);
}

TEST(Hold, TheAdviceCanBeTypedAsItStandsThere) {
    const folder here;
    const std::string key = "it's $HOME's";
    ASSERT_EQ(run_dibs(here, {"hold", key, "--for", "1h", "--reason", "x"}).status, 0);
    const auto told = run_dibs(here, {"run", "-v", key, "true"}).err;
    const auto from = told.find("`dibs ") + 6;
    auto how = dibs_on(here,
                       {"-c",
                        std::string(tests::places::command) + " " +
                            told.substr(from, told.find('`', from) - from)});
    how.program = "/bin/sh";
    EXPECT_EQ(process(how).wait().status, 0) << told;
    EXPECT_EQ(run_dibs(here, {"run", key, "true"}).status, 0) << told;
}

TEST(Hold, AReasonCannotChangeTheTerminal) {
    const folder here;
    ASSERT_EQ(run_dibs(here, {"hold", "k", "--for", "1h", "--reason", "a\x1b[31m\nb\r\x9b"}).status,
              0);
    for (const auto& words : std::vector<std::vector<std::string>>{{"run", "-v", "k", "true"},
                                                                   {"acquire", "-v", "k"},
                                                                   {"check", "k", "--fence", "1"},
                                                                   {"show", "k"},
                                                                   {"ls"}}) {
        const auto told = run_dibs(here, words);
        const auto text = told.out + told.err;
        EXPECT_TRUE(contains(text, "a\\x1b[31m\\x0ab\\x0d")) << text;
        EXPECT_EQ(text.find_first_of("\x1b\r\x9b"), std::string::npos) << text;
    }
}

TEST(Hold, ALeaseThatIsHeldStays) {
    const folder here;
    busy holder(here, "report");
    const auto set = run_dibs(here, {"hold", "report", "--for", "2h", "--reason", "migration"});
    EXPECT_EQ(set.status, 0);
    EXPECT_TRUE(contains(set.err, "still held by")) << set.err;
    EXPECT_EQ(run_dibs(here, {"check", "report", "--fence", holder.fence()}).status, 0);
    holder.stop();
    EXPECT_EQ(run_dibs(here, {"run", "report", "true"}).status, 75);
}

TEST(Hold, WaitersGoOnWhenItIsLifted) {
    const folder here;
    ASSERT_EQ(run_dibs(here, {"hold", "report", "--for", "2h", "--reason", "migration"}).status, 0);
    process waiting(dibs_on(here, {"run", "report", "--wait", "forever", "true"}));
    // Later than its first try.
    EXPECT_EQ(run_dibs(here, {"run", "report", "--wait", "200ms", "true"}).status, 75);
    EXPECT_FALSE(waiting.ended()) << waiting.err();
    ASSERT_EQ(run_dibs(here, {"hold", "report", "--lift"}).status, 0);
    EXPECT_EQ(waiting.wait().status, 0);
}

TEST(Hold, BadTermsChangeNothing) {
    const folder here;
    for (const auto& words : std::vector<std::vector<std::string>>{
             {"hold", "report"},
             {"hold", "report", "--for", "2h"},
             {"hold", "report", "--reason", "x"},
             {"hold", "report", "--for", "0s", "--reason", "x"},
             {"hold", "report", "--for", "2h", "--reason", " "},
             {"hold", "report", "--for", "2h", "--reason", std::string(501, 'x')},
             {"hold", "report", "--lift", "--for", "2h"},
             {"hold", "--lift"}}) {
        const auto refused = run_dibs(here, words);
        EXPECT_EQ(refused.status, 64) << words.back() << refused.err;
        EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
    }
    EXPECT_FALSE(std::filesystem::exists(here.file("locks.db")));
}

TEST(Break, EndsTheLeaseAndStopsTheCommand) {
    const folder here;
    process holder(dibs_on(
        here, {"run", "report", "--ttl", "3s", "sh", "-c", "echo $DIBS_FENCE; exec sleep 300"}));
    ASSERT_TRUE(eventually([&] { return holder.out().ends_with('\n'); })) << holder.err();
    const auto fence = holder.out().substr(0, holder.out().size() - 1);
    const auto broken = run_dibs(here, {"break", "report", "--fence", fence, "--yes"});
    EXPECT_EQ(broken.status, 0) << broken.err;
    EXPECT_TRUE(contains(broken.err, "pid " + std::to_string(holder.id()))) << broken.err;
    EXPECT_TRUE(contains(broken.err, "the lease is ended")) << broken.err;
    EXPECT_EQ(run_dibs(here, {"run", "report", "true"}).status, 0) << "the key is free at once";
    const auto ended = holder.wait();
    EXPECT_EQ(ended.status, 79) << ended.err;
}

TEST(Break, IsToldWhenTheCommandEndsBeforeTheNextRenewal) {
    const folder here;
    for (const auto& start : std::vector<std::vector<std::string>>{
             {"run", "report"}, {"once", "--slot", "x", "report"}, {"elect", "report"}}) {
        auto words = start;
        const auto key = start.front() == "once" ? std::string("report@x") : std::string("report");
        const auto go_on = here.file("go on " + start.front());
        words.insert(words.begin() + 1, {"--ttl", "1h", "--status-file", here.file("told")});
        words.insert(
            words.end(),
            {"sh", "-c", "echo $DIBS_FENCE; while ! test -e '" + go_on + "'; do sleep 0.02; done"});
        process holder(dibs_on(here, words));
        ASSERT_TRUE(eventually([&] { return holder.out().ends_with('\n'); })) << holder.err();
        const auto fence = holder.out().substr(0, holder.out().size() - 1);
        ASSERT_EQ(run_dibs(here, {"break", key, "--fence", fence, "--yes"}).status, 0);
        write_file(go_on, "");
        const auto ended = holder.wait();
        EXPECT_EQ(ended.status, 79) << start.front() << ended.err;
        EXPECT_TRUE(contains(ended.err, "operator")) << start.front() << ended.err;
        const auto told = json::parse(read_file(here.file("told")));
        EXPECT_EQ(told["outcome"], "lost") << start.front();
        EXPECT_TRUE(contains(told["message"].get<std::string>(), "operator")) << told;
    }
}

TEST(Break, LeavesAloneWhoeverGotTheKeyMeanwhile) {
    const folder here;
    std::string older;
    {
        busy first(here, "report");
        older = first.fence();
        first.stop();
    }
    busy holder(here, "report");
    const auto refused = run_dibs(here, {"break", "report", "--fence", older, "--yes"});
    EXPECT_EQ(refused.status, 75);
    EXPECT_TRUE(contains(refused.err, "pid " + std::to_string(holder.run().id()))) << refused.err;
    EXPECT_EQ(run_dibs(here, {"check", "report", "--fence", holder.fence()}).status, 0);
    holder.stop();
    EXPECT_EQ(run_dibs(here, {"break", "report", "--fence", older, "--yes"}).status, 75);
}

TEST(Break, AsksFirst) {
    const folder here;
    busy holder(here, "report");
    const auto without = run_dibs(here, {"break", "report", "--fence", holder.fence()});
    EXPECT_EQ(without.status, 64) << without.err;
    EXPECT_TRUE(contains(without.err, "--yes")) << without.err;
    EXPECT_EQ(run_dibs(here, {"break", "report", "--yes"}).status, 64);
    EXPECT_EQ(run_dibs(here, {"check", "report", "--fence", holder.fence()}).status, 0);
    holder.stop();
}

/// `dibs break` on a terminal on which `answer` is typed once it has asked; its exit status.
int answered(const folder& here, const std::string& fence, const std::string& answer) {
    int keyboard = -1;
    int terminal = -1;
    EXPECT_EQ(::openpty(&keyboard, &terminal, nullptr, nullptr, nullptr), 0);
    ::fcntl(keyboard, F_SETFL, O_NONBLOCK);
    auto how = dibs_on(here, {"break", "report", "--fence", fence});
    how.terminal = terminal;
    process asking(how);
    ::close(terminal);
    std::string screen;
    EXPECT_TRUE(eventually([&] {
        std::array<char, 1024> some{};
        const auto got = ::read(keyboard, some.data(), some.size());
        screen.append(some.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
        return contains(screen, "[y/N]");
    })) << screen;
    EXPECT_TRUE(contains(screen, "sleep 300")) << screen;
    EXPECT_GT(::write(keyboard, answer.data(), answer.size()), 0);
    const int status = asking.wait().status;
    ::close(keyboard);
    return status;
}

TEST(Break, DoesWhatTheAnswerSays) {
    const folder here;
    busy holder(here, "report");
    EXPECT_EQ(answered(here, holder.fence(), "n\n"), 1);
    EXPECT_EQ(answered(here, holder.fence(), "\n"), 1);
    EXPECT_EQ(run_dibs(here, {"check", "report", "--fence", holder.fence()}).status, 0);
    EXPECT_EQ(answered(here, holder.fence(), "y\n"), 0);
    EXPECT_EQ(run_dibs(here, {"check", "report", "--fence", holder.fence()}).status, 1);
    holder.stop();
}

}  // namespace
}  // namespace dibs::testing
