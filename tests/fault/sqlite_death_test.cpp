// SPDX-License-Identifier: Apache-2.0
// Goal: an attached grant ends when its process, and everybody who inherited from it, is gone: at
// once and never sooner. Method: real processes, killed for real.

#include "sqlite_peer.hpp"
#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>

namespace dibs::testing {

namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

class SqliteDeath : public ::testing::Test {
  protected:
    [[nodiscard]] std::string file() const { return (folder_.path() / "dibs.sqlite").string(); }

    [[nodiscard]] std::size_t traces() const {
        const fs::path holders{file() + ".holders"};
        return fs::exists(holders) ? static_cast<std::size_t>(std::distance(
                                         fs::directory_iterator{holders}, fs::directory_iterator{}))
                                   : 0;
    }

    temporary_folder folder_;
};

constexpr auto an_hour = "3600000";

TEST_F(SqliteDeath, KillOfTheHolderLetsTheWaiterInAtOnce) {
    sqlite_peer holder{file()};
    sqlite_peer waiter{file()};
    const auto first = holder.ask(std::string{"acquire k "} + an_hour + " attached");
    ASSERT_GT(number_in(first), 0U) << first;
    ASSERT_EQ(waiter.ask(std::string{"take k "} + an_hour), "waits");
    holder.kill(SIGKILL);
    // Long before the expiry in an hour; the peer has no timer of its own, so only a wake lets it
    // ask again.
    const auto second = waiter.hear();
    EXPECT_EQ(second.substr(0, 7), "granted") << second;
    EXPECT_GT(number_in(second), number_in(first));
}

TEST_F(SqliteDeath, TheNextInLineIsToldWhenTheFirstWaiterHasTakenOverAndDies) {
    sqlite_peer holder{file()};
    sqlite_peer second{file()};
    sqlite_peer third{file()};
    ASSERT_EQ(holder.ask(std::string{"acquire k "} + an_hour + " attached").substr(0, 7),
              "granted");
    ASSERT_EQ(second.ask(std::string{"take k "} + an_hour), "waits");
    ASSERT_EQ(third.ask(std::string{"take k "} + an_hour), "waits");
    holder.kill(SIGKILL);
    ASSERT_EQ(second.hear().substr(0, 7), "granted");
    second.kill(SIGKILL);
    EXPECT_EQ(third.hear().substr(0, 7), "granted");
}

TEST_F(SqliteDeath, ADeadWaiterIsPassedOver) {
    sqlite_peer holder{file()};
    sqlite_peer second{file()};
    sqlite_peer third{file()};
    ASSERT_EQ(holder.ask(std::string{"acquire k "} + an_hour + " attached").substr(0, 7),
              "granted");
    ASSERT_EQ(second.ask(std::string{"take k "} + an_hour), "waits");
    ASSERT_EQ(third.ask(std::string{"take k "} + an_hour), "waits");
    second.kill(SIGKILL);
    ASSERT_EQ(holder.ask("release k"), "released");
    EXPECT_EQ(third.hear().substr(0, 7), "granted");
}

TEST_F(SqliteDeath, AChildThatInheritedKeepsTheLeaseAlive) {
    sqlite_peer holder{file()};
    ASSERT_EQ(holder.ask(std::string{"acquire k "} + an_hour + " attached").substr(0, 7),
              "granted");
    const auto child = static_cast<pid_t>(std::stol(holder.ask("inherit")));
    ASSERT_GT(child, 0);
    sqlite_peer waiter{file()};
    ASSERT_EQ(waiter.ask(std::string{"take k "} + an_hour), "waits");

    holder.kill(SIGKILL);
    sqlite_here other{file()};
    ASSERT_TRUE(other.opened()) << other.detail;
    EXPECT_EQ(other.ask(acquire_of("k", holder_of(1))).what, core::verdict::held);
    EXPECT_EQ(waiter.hear(100ms), "") << "nothing has happened that it could be told";

    ::kill(child, SIGKILL);
    EXPECT_EQ(waiter.hear().substr(0, 7), "granted");
}

TEST_F(SqliteDeath, ACleanEndWithAChildLeftKeepsTheLeaseAlive) {
    sqlite_peer holder{file()};
    ASSERT_EQ(holder.ask(std::string{"acquire k "} + an_hour + " attached").substr(0, 7),
              "granted");
    const auto child = static_cast<pid_t>(std::stol(holder.ask("inherit")));
    ASSERT_GT(child, 0);
    holder.quit();
    sqlite_here other{file()};
    ASSERT_TRUE(other.opened()) << other.detail;
    EXPECT_EQ(other.ask(acquire_of("k", holder_of(1))).what, core::verdict::held);
    ::kill(child, SIGKILL);
    const auto end = other.world().now() + 20s;
    auto told = other.ask(acquire_of("k", holder_of(1)));
    while (told.what == core::verdict::held && other.world().now() < end) {
        other.world().run_until([] { return false; }, 5ms);
        told = other.ask(acquire_of("k", holder_of(1)));
    }
    EXPECT_EQ(told.what, core::verdict::granted);
}

TEST_F(SqliteDeath, ADetachedLeaseOutlivesItsProcess) {
    sqlite_peer killed{file()};
    ASSERT_EQ(killed.ask("acquire a 3600000 detached").substr(0, 7), "granted");
    killed.kill(SIGKILL);
    sqlite_peer ended{file()};
    ASSERT_EQ(ended.ask("acquire b 3600000 detached").substr(0, 7), "granted");
    ended.quit();

    sqlite_here other{file()};
    ASSERT_TRUE(other.opened()) << other.detail;
    for (const auto* key : {"a", "b"}) {
        const auto told = other.ask(acquire_of(key, holder_of(1)));
        ASSERT_EQ(told.what, core::verdict::held) << key;
        EXPECT_EQ(told.holders.front().who.host, "peer") << "people are still told who gave it";
    }
}

TEST_F(SqliteDeath, ANewBootVoidsEveryGrantAndFencesRiseOn) {
    std::uint64_t before = 0;
    {
        sqlite_peer holder{file(), "first-boot"};
        before = number_in(holder.ask("acquire attached 3600000 attached"));
        ASSERT_GT(before, 0U);
        ASSERT_EQ(holder.ask("acquire detached 3600000 detached").substr(0, 7), "granted");
        sqlite_here same{file(), "first-boot"};
        ASSERT_TRUE(same.opened()) << same.detail;
        EXPECT_EQ(same.ask(acquire_of("attached", holder_of(1))).what, core::verdict::held);
        EXPECT_EQ(same.ask(acquire_of("detached", holder_of(1))).what, core::verdict::held);
        holder.kill(SIGKILL);
    }
    sqlite_here next{file(), "second-boot"};
    ASSERT_TRUE(next.opened()) << next.detail;
    for (const auto* key : {"attached", "detached"}) {
        const auto told = next.ask(acquire_of(key, holder_of(2)));
        EXPECT_EQ(told.what, core::verdict::granted) << key;
        EXPECT_GT(told.fences.last, before) << key;
    }
}

TEST_F(SqliteDeath, TheDeadAreSweptAwayAndACleanEndLeavesNothing) {
    {
        sqlite_peer clean{file()};
        ASSERT_EQ(clean.ask("acquire k 60000 attached").substr(0, 7), "granted");
        ASSERT_EQ(clean.ask("watch other"), "ready");
        EXPECT_EQ(traces(), 2U) << "a sign of life and a socket";
        ASSERT_EQ(clean.ask("release k"), "released");
        clean.quit();
    }
    EXPECT_EQ(traces(), 0U);
    {
        sqlite_peer killed{file()};
        ASSERT_EQ(killed.ask("acquire k 60000 attached").substr(0, 7), "granted");
        ASSERT_EQ(killed.ask("watch other"), "ready");
        killed.kill(SIGKILL);
    }
    EXPECT_EQ(traces(), 2U);
    {
        sqlite_here finder{file()};
        ASSERT_TRUE(finder.opened()) << finder.detail;
        EXPECT_EQ(finder.ask(acquire_of("k", holder_of(1))).what, core::verdict::granted);
        EXPECT_EQ(traces(), 1U) << "its own alone";
        const auto page = finder.list();
        for (const auto& record : page.records) {
            EXPECT_EQ(record.waiters, 0U) << record.key << ": the dead wait for nothing";
        }
        EXPECT_EQ(finder.ask(release_of("k", holder_of(1))).what, core::verdict::released);
    }
    EXPECT_EQ(traces(), 0U);
}

TEST_F(SqliteDeath, AMissingSignOfLifeProvesNothing) {
    sqlite_peer holder{file()};
    ASSERT_EQ(holder.ask("acquire k 3600000 attached").substr(0, 7), "granted");
    fs::remove_all(file() + ".holders");
    sqlite_here other{file()};
    ASSERT_TRUE(other.opened()) << other.detail;
    EXPECT_EQ(other.ask(acquire_of("k", holder_of(1))).what, core::verdict::held);
}

}  // namespace

}  // namespace dibs::testing
