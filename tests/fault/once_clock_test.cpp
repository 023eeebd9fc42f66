// SPDX-License-Identifier: Apache-2.0
// dibs once on hosts whose wall clocks are weeks ahead or behind: no slot that was run runs again.
#include "shifted_clock.hpp"
#include "support.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <ctime>
#include <string>
#include <vector>

namespace dibs::testing {
namespace {

using list = std::vector<std::string>;

constexpr int hour = 3600;
constexpr int day = 24 * hour;

std::size_t runs_in(const folder& here) {
    const auto text = exists(here.file("ran")) ? read_file(here.file("ran")) : "";
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

launch once_on(const folder& here, list options, const std::string& script = "echo ran >> ran") {
    list words{"once"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"job", "--", "sh", "-c", script});
    return dibs_on(here, words);
}

/// Enough steps that a store looks for what it may forget.
void busy(const folder& here, const shifted_clock& clock) {
    for (int number = 0; number < 20; ++number) {
        ASSERT_EQ(process(clock.seen_by(dibs_on(here, {"run", "k", "true"}))).wait().status, 0);
    }
}

TEST(OnceClock, AtMostOnceIsForGoodWhateverTheClockOfWhoeverAsks) {
    const folder here;
    const shifted_clock clock(here, "clock");
    const list careful{"--slot", "s", "--at-most-once", "--ttl", "1s"};
    process first(once_on(here, careful, "echo x > x; exec sleep 100"));
    ASSERT_TRUE(eventually([&] { return exists(here.file("x")); })) << first.err();
    first.signal(SIGKILL);
    first.wait();
    ASSERT_TRUE(eventually([&] {
        return run_dibs(here, {"runs", "job"}).out.find("never ended") != std::string::npos;
    }));
    for (const int shift : {30 * day, 4000 * day, -400 * day}) {
        clock.shift(shift);
        EXPECT_EQ(process(clock.seen_by(once_on(here, careful))).wait().status, 1) << shift;
        busy(here, clock);
    }
    EXPECT_EQ(process(once_on(here, careful)).wait().status, 1);
    EXPECT_EQ(runs_in(here), 0U);
}

TEST(OnceClock, APlannedSlotDoesNotRunAgainAfterAClockWasAheadForLong) {
    for (const list& how : {list{}, list{"--at-most-once"}}) {
        const folder here;
        const shifted_clock clock(here, "clock");
        auto daily = how;
        daily.insert(daily.end(), {"--every", "day", "--keep", "30h"});
        for (int past = 30; past >= 0; --past) {
            clock.shift(-past * day);
            ASSERT_EQ(process(clock.seen_by(once_on(here, daily))).wait().status, 0) << past;
        }
        ASSERT_EQ(runs_in(here), 31U);
        for (int ahead = 60; ahead < 72; ++ahead) {
            clock.shift(ahead * day);
            ASSERT_EQ(process(clock.seen_by(once_on(here, daily))).wait().status, 0) << ahead;
        }
        busy(here, clock);
        ASSERT_EQ(runs_in(here), 43U) << "those ahead have slots of their own";
        for (int past = 30; past >= 0; --past) {
            clock.shift(-past * day);
            const auto late = process(clock.seen_by(once_on(here, daily))).wait();
            EXPECT_TRUE(late.status == 0 || late.status == 75) << past << late.err;
        }
        EXPECT_EQ(runs_in(here), 43U);
        // Its right clock tells a host of a day that nobody has seen: that one runs.
        clock.shift(day);
        EXPECT_EQ(process(clock.seen_by(once_on(here, daily))).wait().status, 0);
        EXPECT_EQ(runs_in(here), 44U);
    }
}

TEST(OnceClock, AHostWhoseClockIsFarBehindIsToldThatTheSlotIsForgotten) {
    const folder here;
    const shifted_clock clock(here, "clock");
    const list daily{"--every", "day", "--keep", "30h"};
    for (int past = 40; past >= 0; --past) {
        clock.shift(-past * day);
        ASSERT_EQ(process(clock.seen_by(once_on(here, daily))).wait().status, 0) << past;
    }
    clock.shift(-40 * day);
    const auto late = process(clock.seen_by(once_on(here, daily))).wait();
    EXPECT_EQ(late.status, 75);
    EXPECT_NE(late.err.find("clock"), std::string::npos) << late.err;
    const auto looked =
        process(clock.seen_by(dibs_on(here, {"once", "job", "--every", "day", "--dry-run"})))
            .wait();
    EXPECT_NE(looked.out.find("would run   no"), std::string::npos) << looked.out;
    EXPECT_EQ(runs_in(here), 41U);
}

TEST(OnceClock, ABackOffIsNotShortenedByAClockThatIsAhead) {
    const folder here;
    const shifted_clock clock(here, "clock");
    const list patient{"--slot", "s", "--retries", "1", "--backoff", "1h"};
    EXPECT_EQ(process(once_on(here, patient, "exit 7")).wait().status, 7);
    clock.shift(5 * hour);
    EXPECT_EQ(process(clock.seen_by(once_on(here, patient))).wait().status, 75);
    const auto looked =
        process(clock.seen_by(dibs_on(here, {"once", "job", "--slot", "s", "--dry-run"}))).wait();
    EXPECT_NE(looked.out.find("would run   no"), std::string::npos) << looked.out;
    EXPECT_EQ(runs_in(here), 0U);
}

/// Three hosts whose timers fire at the full minute of their own clocks, up to 50 s apart.
TEST(OnceClock, OfHostsSecondsApartOneRunsEachSlot) {
    const folder here;
    const shifted_clock clock(here, "clock");
    const auto now = static_cast<int>(::time(nullptr));
    const int first_minute = (now / 60 + 10) * 60;
    for (int number = 0; number < 10; ++number) {
        // On time; on time, long after the first has finished; a second early, as timers that round
        // down are; and once more by hand, in the same minute.
        for (const int off : {0, 0, -1, 40}) {
            clock.shift(first_minute + number * 60 + off - static_cast<int>(::time(nullptr)));
            const auto fired =
                clock.seen_by(once_on(here, {"--every", "1m"}, "echo $DIBS_SLOT >> ran"));
            EXPECT_EQ(process(fired).wait().status, 0);
        }
    }
    EXPECT_EQ(runs_in(here), 10U) << read_file(here.file("ran"));
}

TEST(OnceClock, AWaitForASlotLastsAsLongAsAskedWhileTheWallClockJumps) {
    const folder here;
    process holder(once_on(here, {"--slot", "s"}, "echo x > x; exec sleep 300"));
    ASSERT_TRUE(eventually([&] { return exists(here.file("x")); })) << holder.err();
    for (const int jump : {hour, -hour}) {
        const shifted_clock clock(here, "clock");
        const auto from = boottime_ns();
        process waiter(clock.seen_by(once_on(here, {"--slot", "s", "--wait", "2s"})));
        ASSERT_TRUE(eventually([&] {
            return run_dibs(here, {"ls", "--json"}).out.find("\"waiters\": 1") != std::string::npos;
        }));
        clock.shift(jump);
        EXPECT_EQ(waiter.wait().status, 75);
        EXPECT_GE(boottime_ns() - from, 2'000'000'000) << jump;
    }
    holder.signal(SIGTERM);
    holder.wait();
}

}  // namespace
}  // namespace dibs::testing
