// SPDX-License-Identifier: Apache-2.0
// Wall clocks that disagree and jump, and boot clocks that time namespaces shift: none of them
// decides who holds a key, or how long a wait lasts.
#include "support.hpp"
#include "support/places.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

namespace dibs::testing {
namespace {

constexpr std::int64_t second_ns = 1'000'000'000;

/// A wall clock of its own for whoever is launched with it.
class wall_clock {
  public:
    wall_clock(const folder& here, const std::string& name) : path_(here.file(name)) { shift(0); }
    void shift(int seconds) const { write_file(path_, std::to_string(seconds)); }
    [[nodiscard]] launch seen_by(launch how) const {
        how.variables["LD_PRELOAD"] = tests::places::clock_shim;
        how.variables["SHIFT_FILE"] = path_;
        return how;
    }

  private:
    std::string path_;
};

/// In a time namespace whose boot clock is `seconds` ahead. The launched process is unshare(1), and
/// the command its child.
launch ahead(launch how, int seconds) {
    const auto shift = std::to_string(seconds);
    std::vector<std::string> words{"--time", "--boottime", shift, "--monotonic", shift, "--fork"};
    words.emplace_back(tests::places::command);
    words.insert(words.end(), how.words.begin(), how.words.end());
    how.words = std::move(words);
    how.program = "/usr/bin/unshare";
    return how;
}

bool time_namespaces_work() {
    if (!exists("/usr/bin/unshare")) {
        return false;
    }
    launch probe;
    probe.program = "/usr/bin/unshare";
    probe.words = {"--time", "--boottime", "100", "--fork", "true"};
    return process(probe).wait().status == 0;
}

/// Leaves nobody who could stop the child or give its lease back.
void kill_wrapper_and_guard(pid_t wrapper) {
    const auto guards = children_named(wrapper, "dibs-guard");
    ASSERT_EQ(guards.size(), 1U);
    ::kill(guards.front(), SIGKILL);
    ::kill(wrapper, SIGKILL);
}

pid_t first_worker(const std::string& log) {
    EXPECT_TRUE(eventually([&] { return !read_beats(log).empty(); }));
    return read_beats(log).front().process;
}

TEST(RunClock, ClientsThatDisagreeByMinutesExcludeEachOtherAndSeeTheLeaseEnd) {
    for (const int skew : {-180, 180}) {
        const folder here;
        const wall_clock one(here, "one");
        const wall_clock other(here, "other");
        one.shift(skew);
        other.shift(-skew);
        const auto log = here.file("beats");
        process holder(
            one.seen_by(dibs_on(here, {"run", "--ttl", "1s", "k", child_program(), "beat", log})));
        const auto worker = first_worker(log);
        // Three times the ttl: it is renewed, so nobody else may have it.
        const auto until = boottime_ns() + 3 * second_ns;
        while (boottime_ns() < until) {
            ASSERT_EQ(process(other.seen_by(dibs_on(here, {"run", "k", "true"}))).wait().status,
                      75);
        }
        kill_wrapper_and_guard(holder.id());
        const auto next =
            process(other.seen_by(dibs_on(
                        here, {"run", "--wait", "20s", "k", "sh", "-c", "echo $DIBS_FENCE"})))
                .wait();
        EXPECT_EQ(next.status, 0) << skew << next.err;
        const auto after =
            process(one.seen_by(dibs_on(here, {"run", "k", "sh", "-c", "echo $DIBS_FENCE"})))
                .wait();
        ASSERT_EQ(after.status, 0) << after.err;
        EXPECT_GT(std::stoull(next.out), read_beats(log).front().fence);
        EXPECT_GT(std::stoull(after.out), std::stoull(next.out));
        ::kill(worker, SIGKILL);
    }
}

TEST(RunClock, AWaitLastsAsLongAsAskedWhileTheWallClockJumps) {
    const folder here;
    process holder(dibs_on(here, {"run", "k", "sh", "-c", "echo ready; exec sleep 300"}));
    ASSERT_TRUE(eventually([&] { return !holder.out().empty(); })) << holder.err();
    for (const int jump : {3600, -3600}) {
        const wall_clock clock(here, "clock");
        const auto from = boottime_ns();
        process waiter(clock.seen_by(dibs_on(here, {"run", "--wait", "2s", "k", "true"})));
        ASSERT_TRUE(eventually([&] {
            return run_dibs(here, {"ls", "--json"}).out.find("\"waiters\": 1") != std::string::npos;
        }));
        clock.shift(jump);
        EXPECT_EQ(waiter.wait().status, 75);
        EXPECT_GE(boottime_ns() - from, 2 * second_ns) << jump;
    }
    holder.signal(SIGTERM);
    holder.wait();
}

TEST(RunClock, ARunningChildSurvivesJumpsOfTheWallClock) {
    const folder here;
    const wall_clock clock(here, "clock");
    const auto log = here.file("beats");
    process holder(
        clock.seen_by(dibs_on(here, {"run", "--ttl", "1s", "k", child_program(), "beat", log})));
    (void)first_worker(log);
    for (const int jump : {3600, -3600}) {
        clock.shift(jump);
        const auto until = boottime_ns() + 3 * second_ns / 2;
        ASSERT_TRUE(eventually([&] { return read_beats(log).back().boottime_ns > until; }));
        EXPECT_EQ(run_dibs(here, {"run", "k", "true"}).status, 75);
    }
    holder.signal(SIGTERM);
    EXPECT_EQ(holder.wait().status, 128 + SIGTERM);
}

TEST(RunClock, ShiftedBootClocksAgreeOnWhoHoldsAndOnTheEnd) {
    if (!time_namespaces_work()) {
        GTEST_SKIP() << "no time namespaces here, or no right to make one";
    }
    const std::vector<std::string> waiting{"run", "--wait", "20s", "k", "true"};
    for (const bool holder_ahead : {true, false}) {
        const folder here;
        const auto log = here.file("beats");
        const auto beat = dibs_on(here, {"run", "--ttl", "1s", "k", child_program(), "beat", log});
        process holder(holder_ahead ? ahead(beat, 100'000) : beat);
        const auto worker = first_worker(log);
        const auto until = boottime_ns() + 3 * second_ns;
        while (boottime_ns() < until) {
            const auto attempt = dibs_on(here, {"run", "k", "true"});
            ASSERT_EQ(process(attempt).wait().status, 75);
            ASSERT_EQ(process(ahead(attempt, 500'000)).wait().status, 75);
        }
        pid_t wrapper = holder.id();
        if (holder_ahead) {
            const auto found = children_named(holder.id(), "dibs");
            ASSERT_EQ(found.size(), 1U);
            wrapper = found.front();
        }
        kill_wrapper_and_guard(wrapper);
        const auto next = dibs_on(here, waiting);
        EXPECT_EQ(process(holder_ahead ? next : ahead(next, 100'000)).wait().status, 0);
        ::kill(worker, SIGKILL);
        holder.wait();
    }
}

}  // namespace
}  // namespace dibs::testing
