// SPDX-License-Identifier: Apache-2.0
// Goal: what a process left behind goes, and nothing that somebody still needs does.
// Method: several folder objects, each standing for a process.

#include "store/sqlite/holders_folder.hpp"
#include "support/temporary_folder.hpp"
#include "support/verbs.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace dibs::testing {

namespace {

namespace fs = std::filesystem;
using store::file_descriptor;
using store::sqlite::holders_folder;

class SqliteFolder : public ::testing::Test {
  protected:
    [[nodiscard]] bool there(const std::string& name) const {
        return fs::exists(fs::path{file() + ".holders"} / name);
    }
    [[nodiscard]] std::string file() const { return (folder_.path() / "dibs.sqlite").string(); }

    temporary_folder folder_;
};

TEST_F(SqliteFolder, AProcessIsAliveUntilItsLastDescriptorIsClosed) {
    holders_folder holder{file(), holder_of(1)};
    holders_folder other{file(), holder_of(2)};
    EXPECT_FALSE(other.gone(holder_of(1))) << "never seen proves nothing";
    ASSERT_FALSE(holder.appear());
    EXPECT_FALSE(other.gone(holder_of(1)));
    file_descriptor inherited{::dup(holder.lifeline())};
    EXPECT_FALSE(holder.disappear()) << "somebody inherited it";
    EXPECT_FALSE(other.gone(holder_of(1)));
    inherited.close();
    EXPECT_TRUE(other.gone(holder_of(1)));
    EXPECT_TRUE(holders_folder(file(), holder_of(3)).gone(holder_of(1))) << "seen late as well";
}

TEST_F(SqliteFolder, ASweepTakesWhatNobodyKnowsAndNobodyHolds) {
    holders_folder dead{file(), holder_of(1)};
    holders_folder known{file(), holder_of(2)};
    holders_folder alive{file(), holder_of(3)};
    holders_folder sweeper{file(), holder_of(4)};
    file_descriptor socket;
    for (auto* one : {&dead, &known, &alive, &sweeper}) {
        ASSERT_FALSE(one->appear());
    }
    ASSERT_FALSE(dead.bind_wake(socket));
    socket.close();
    ASSERT_TRUE(dead.disappear());
    ASSERT_TRUE(known.disappear());
    sweeper.sweep([](const auto& process) { return process != holder_of(2); });
    EXPECT_FALSE(there(holder_of(1).text()));
    EXPECT_FALSE(there(holder_of(1).text() + ".wake"));
    EXPECT_TRUE(there(holder_of(2).text()))
        << "its row is still to be removed, by the file's rules";
    EXPECT_TRUE(there(holder_of(3).text()));
    EXPECT_TRUE(there(holder_of(4).text()));
}

TEST_F(SqliteFolder, AWakeTellsTheDeadFromTheBusy) {
    holders_folder waiter{file(), holder_of(1)};
    holders_folder holder{file(), holder_of(2)};
    file_descriptor socket;
    ASSERT_FALSE(waiter.bind_wake(socket));
    EXPECT_EQ(holder.wake(holder_of(1), "k"), holders_folder::reach::woken);
    auto reached = holders_folder::reach::woken;
    for (int at = 0; at < 100'000 && reached == holders_folder::reach::woken; ++at) {
        reached = holder.wake(holder_of(1), "k");
    }
    EXPECT_EQ(reached, holders_folder::reach::not_now) << "its queue is full, so it has wakes";
    socket.close();
    EXPECT_EQ(holder.wake(holder_of(1), "k"), holders_folder::reach::gone);
    EXPECT_EQ(holder.wake(holder_of(7), "k"), holders_folder::reach::gone);
}

}  // namespace

}  // namespace dibs::testing
