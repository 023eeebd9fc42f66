// SPDX-License-Identifier: Apache-2.0
// dibs elect: who leads when, and that two never do.
#include "support.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <string>
#include <vector>

namespace dibs::testing {
namespace {

constexpr std::int64_t second_ns = 1'000'000'000;

launch beats(const folder& here, const std::string& ttl) {
    return dibs_on(here, {"elect", "--ttl", ttl, "k", child_program(), "beat", here.file("beats")});
}

/// A leader and a candidate whose ttls differ.
struct pair_of_hosts {
    std::string leader_ttl;
    std::string candidate_ttl;
    folder here;
    std::unique_ptr<process> leader;
    std::unique_ptr<process> candidate;
    std::int64_t frozen_at = 0;

    [[nodiscard]] std::string log() const { return here.file("beats"); }
    /// When somebody else began to lead; 0: not yet.
    [[nodiscard]] std::int64_t changed_at() const {
        const auto all = read_beats(log());
        const auto next = std::find_if(all.begin(), all.end(), [&](const beat& one) {
            return one.fence != all.front().fence;
        });
        return next == all.end() ? 0 : next->boottime_ns;
    }
};

TEST(Elect, TheLeadersOwnTtlRulesWhateverTheCandidatesIs) {
    pair_of_hosts patient{"10s", "1s", {}, {}, {}};
    pair_of_hosts hasty{"1s", "10s", {}, {}, {}};
    for (auto* both : {&patient, &hasty}) {
        both->leader = std::make_unique<process>(beats(both->here, both->leader_ttl));
        ASSERT_TRUE(eventually([&] { return !read_beats(both->log()).empty(); }));
        both->candidate = std::make_unique<process>(beats(both->here, both->candidate_ttl));
    }
    // Longer than three ttls of the short kind: the living are not taken over.
    const auto begun = boottime_ns();
    ASSERT_TRUE(eventually([&] { return boottime_ns() > begun + 7 * second_ns / 2; }));
    for (auto* both : {&patient, &hasty}) {
        EXPECT_EQ(both->changed_at(), 0) << both->leader_ttl;
        // Frozen, not dead: the store cannot know, and goes by the ttl alone.
        both->leader->signal(SIGSTOP);
        both->frozen_at = boottime_ns();
    }
    ASSERT_TRUE(eventually([&] { return hasty.changed_at() != 0; })) << hasty.candidate->err();
    EXPECT_LT(hasty.changed_at(), hasty.frozen_at + 8 * second_ns)
        << "the candidate waited for its own ttl";
    ASSERT_TRUE(eventually([&] { return patient.changed_at() != 0; })) << patient.candidate->err();
    // Renewed every third of the ttl, so at least half of it was left.
    EXPECT_GT(patient.changed_at(), patient.frozen_at + 5 * second_ns)
        << "the candidate went by its own ttl";
    for (auto* both : {&patient, &hasty}) {
        both->leader->signal(SIGCONT);
        EXPECT_EQ(both->leader->wait().status, 79);
        both->candidate->signal(SIGTERM);
        (void)both->candidate->wait();
        EXPECT_EQ(overlap_in(read_beats(both->log())), "") << both->leader_ttl;
    }
}

TEST(Elect, ALeaderThatDiesIsFollowedAtOnceWhateverItsTtl) {
    const folder here;
    process leader(beats(here, "1h"));
    ASSERT_TRUE(eventually([&] { return !read_beats(here.file("beats")).empty(); }));
    process candidate(beats(here, "1s"));
    leader.signal(SIGKILL);
    // Not before its command is gone, which the guard sees to.
    EXPECT_TRUE(eventually([&] {
        const auto all = read_beats(here.file("beats"));
        return all.back().fence != all.front().fence;
    })) << candidate.err();
    candidate.signal(SIGTERM);
    (void)candidate.wait();
    EXPECT_EQ(overlap_in(read_beats(here.file("beats"))), "");
}

TEST(Elect, ToldSoItExitsNonZeroAfterAGoodEndSoThatASupervisorStartsItAgain) {
    const folder here;
    const auto elect = [&](std::vector<std::string> options, const std::string& script) {
        options.insert(options.begin(), "elect");
        options.insert(options.end(), {"k", "--", "sh", "-c", script});
        return options;
    };
    EXPECT_EQ(run_dibs(here, elect({}, "exit 0")).status, 0);
    EXPECT_EQ(run_dibs(here, elect({"--ended-code", "9"}, "exit 0")).status, 9);
    EXPECT_EQ(run_dibs(here, elect({"--ended-code", "9"}, "exit 3")).status, 3);
    EXPECT_EQ(run_dibs(here, elect({"--ended-code", "300"}, "exit 0")).status, 64);
    // Whoever tells it to end wants no other start.
    process leader(
        dibs_on(here,
                elect({"--ended-code", "9"},
                      "trap 'exit 0' TERM; echo > begun; while :; do sleep 0.05; done")));
    ASSERT_TRUE(eventually([&] { return exists(here.file("begun")); })) << leader.err();
    leader.signal(SIGTERM);
    EXPECT_EQ(leader.wait().status, 0) << leader.err();
}

TEST(Elect, WatchTellsEachChangeOfLeaderWithItsTerm) {
    const folder here;
    ASSERT_EQ(run_dibs(here, {"run", "other", "true"}).status, 0) << "a store to look at";
    process observer(dibs_on(here, {"watch", "--every", "50ms", "--json", "k"}));
    std::vector<std::string> terms;
    for (int turn = 0; turn < 2; ++turn) {
        const auto go = here.file("go" + std::to_string(turn));
        process leader(dibs_on(
            here,
            {"elect",
             "k",
             "sh",
             "-c",
             "echo $DIBS_TERM > term; until test -e " + go + "; do sleep 0.02; done; rm term"}));
        ASSERT_TRUE(eventually([&] {
            return exists(here.file("term")) && !read_file(here.file("term")).empty();
        })) << leader.err();
        auto term = read_file(here.file("term"));
        term.pop_back();
        const auto told = "\"change\":\"granted\",\"key\":\"k\",\"fence\":" + term;
        EXPECT_TRUE(eventually([&] {
            auto text = observer.out();
            std::erase(text, ' ');
            return text.find(told) != std::string::npos;
        })) << observer.out()
            << observer.err();
        terms.push_back(term);
        write_file(go, "");
        EXPECT_EQ(leader.wait().status, 0);
    }
    EXPECT_LT(std::stoull(terms[0]), std::stoull(terms[1]));
    observer.signal(SIGTERM);
    EXPECT_EQ(observer.wait().status, 0);
}

TEST(Elect, ALeaderThatCannotRenewIsStoppedBeforeItsTermCanEnd) {
    const folder here;
    process leader(
        dibs_on(here, {"elect", "--ttl", "2s", "k", child_program(), "beat", here.file("beats")}));
    ASSERT_TRUE(eventually([&] { return !read_beats(here.file("beats")).empty(); }));
    process standby(
        dibs_on(here, {"elect", "--ttl", "2s", "k", child_program(), "beat", here.file("beats")}));
    // Nobody renews any more: its guard stops the command, not the frozen leader.
    leader.signal(SIGSTOP);
    EXPECT_TRUE(eventually([&] {
        const auto all = read_beats(here.file("beats"));
        return all.back().fence != all.front().fence;
    })) << standby.err();
    EXPECT_EQ(overlap_in(read_beats(here.file("beats"))), "");
    leader.signal(SIGCONT);
    EXPECT_EQ(leader.wait().status, 79) << leader.err();
    standby.signal(SIGTERM);
    (void)standby.wait();
}

TEST(Elect, TheNextOneLeadsOnlyWhenAllWorkersOfTheLastHaveEnded) {
    const folder here;
    const auto log = here.file("log");
    const std::string worker = "trap 'sleep 0.7; echo ended >>" + log +
                               "; exit' TERM; echo began >>" + log +
                               "; while :; do sleep 0.05; done";
    write_file(here.file("lead"),
               "trap : TERM\nfor worker in 1 2 3 4 5 6 7 8; do sh -c \"" + worker +
                   "\" &\ndone\nwhile ! wait; do :; done\nwait\n");
    process leader(dibs_on(here, {"elect", "k", "sh", here.file("lead")}));
    const auto lines = [&](const std::string& what) {
        const auto text = read_file(log);
        std::size_t count = 0;
        for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) {
            ++count;
        }
        return count;
    };
    ASSERT_TRUE(eventually([&] { return lines("began") == 8; })) << leader.err();
    process next(dibs_on(here, {"elect", "k", "sh", "-c", "echo next >>" + log}));
    leader.signal(SIGTERM);
    EXPECT_EQ(next.wait().status, 0);
    (void)leader.wait();
    const auto told = read_file(log);
    EXPECT_EQ(lines("ended"), 8U) << told;
    EXPECT_TRUE(told.ends_with("ended\nnext\n")) << told;
}

}  // namespace
}  // namespace dibs::testing
