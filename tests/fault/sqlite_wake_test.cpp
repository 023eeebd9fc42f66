// SPDX-License-Identifier: Apache-2.0
// Goal: a release wakes one waiter of another process, and a wake that is not used goes on to the
// next. Method: real processes without any timer behind their waits: who is not woken never asks
// again.

#include "sqlite_peer.hpp"
#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace dibs::testing {

namespace {

using namespace std::chrono_literals;

class SqliteWake : public ::testing::Test {
  protected:
    [[nodiscard]] std::string file() const { return (folder_.path() / "dibs.sqlite").string(); }
    temporary_folder folder_;
};

TEST_F(SqliteWake, EachReleaseLetsOneWaiterInAndTheRestSleep) {
    constexpr std::size_t waiters = 12;
    sqlite_here first{file()};
    ASSERT_TRUE(first.opened()) << first.detail;
    ASSERT_EQ(first.ask(acquire_of("k", holder_of(1), 1h)).what, core::verdict::granted);
    std::vector<std::unique_ptr<sqlite_peer>> peers;
    for (std::size_t at = 0; at < waiters; ++at) {
        peers.push_back(std::make_unique<sqlite_peer>(file()));
        ASSERT_EQ(peers.back()->ask("take k 3600000"), "waits");
    }
    EXPECT_EQ(first.list().records.at(0).waiters, waiters);
    const auto left = first.ask(release_of("k", holder_of(1)));
    ASSERT_EQ(left.what, core::verdict::released);
    EXPECT_TRUE(left.waiters);
    std::uint64_t fence = left.fences.last;
    unsigned long long attempts = 0;
    for (std::size_t at = 0; at < waiters; ++at) {
        const auto line = peers[at]->hear();
        ASSERT_EQ(line.substr(0, 7), "granted")
            << "waiter " << at << " in the order they came: " << line;
        EXPECT_GT(number_in(line), fence);
        fence = number_in(line);
        attempts += std::stoull(line.substr(line.rfind(' ')));
        ASSERT_EQ(peers[at]->ask("release k"), "released");
        peers[at]->quit();
    }
    // One try when it came, one when it was woken, and at most a spurious one when the process
    // before it ended.
    EXPECT_LE(attempts, 3 * waiters) << "not every release may wake everybody";
}

TEST_F(SqliteWake, AWakeThatIsNotUsedGoesOn) {
    sqlite_here holder{file()};
    ASSERT_TRUE(holder.opened()) << holder.detail;
    ASSERT_EQ(holder.ask(acquire_of("k", holder_of(1), 1h)).what, core::verdict::granted);
    sqlite_peer idle{file()};
    ASSERT_EQ(idle.ask("watch k"), "ready");
    sqlite_peer next{file()};
    ASSERT_EQ(next.ask("take k 3600000"), "waits");
    ASSERT_EQ(holder.ask(release_of("k", holder_of(1))).what, core::verdict::released);
    ASSERT_EQ(idle.hear(), "woken k");
    EXPECT_EQ(next.hear(100ms), "") << "one is woken";
    ASSERT_EQ(idle.ask("unwatch k"), "unwatched");
    EXPECT_EQ(next.hear().substr(0, 7), "granted");
}

TEST_F(SqliteWake, AReleaseBetweenCheckAndRegistrationIsNotMissed) {
    sqlite_here holder{file()};
    ASSERT_TRUE(holder.opened()) << holder.detail;
    sqlite_peer waiter{file()};
    for (std::uint64_t round = 1; round <= 100; ++round) {
        ASSERT_EQ(holder.ask(acquire_of("k", holder_of(round), 1h)).what, core::verdict::granted);
        waiter.say("take k 3600000");
        ASSERT_EQ(holder.ask(release_of("k", holder_of(round))).what, core::verdict::released);
        auto told = waiter.hear();
        if (told == "waits") {
            told = waiter.hear();
        }
        ASSERT_EQ(told.substr(0, 7), "granted") << "round " << round;
        ASSERT_EQ(waiter.ask("release k"), "released");
    }
}

TEST_F(SqliteWake, PathsLongerThanASocketAddressWork) {
    auto folder = folder_.path();
    while (folder.string().size() < 300) {
        folder /= std::string(60, 'd');
    }
    std::filesystem::create_directories(folder);
    const auto path = (folder / "dibs.sqlite").string();
    sqlite_here holder{path};
    ASSERT_TRUE(holder.opened()) << holder.detail;
    ASSERT_EQ(holder.ask(acquire_of("k", holder_of(1), 1h)).what, core::verdict::granted);
    sqlite_peer waiter{path};
    ASSERT_EQ(waiter.ask("take k 3600000"), "waits");
    ASSERT_EQ(holder.ask(release_of("k", holder_of(1))).what, core::verdict::released);
    EXPECT_EQ(waiter.hear().substr(0, 7), "granted");
}

}  // namespace

}  // namespace dibs::testing
