// SPDX-License-Identifier: Apache-2.0
// Goal: a file whose rights were widened is shared in full: its users exclude each other, wake each
// other and see each other die. Method: processes of several users, which takes root.

#include "sqlite_peer.hpp"
#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace dibs::testing {

namespace {

namespace fs = std::filesystem;

constexpr gid_t shared = 64990;

class SqliteUsers : public ::testing::Test {
  protected:
    void SetUp() override {
        if (::geteuid() != 0) {
            GTEST_SKIP() << "becoming several users takes root";
        }
    }

    /// A file of root's for a group, in a folder that the group may write, as the page on the store
    /// tells.
    std::string shared_file() const {
        const auto path = (folder_.path() / "dibs.sqlite").string();
        { std::ofstream{path}; }
        EXPECT_EQ(::chown(path.c_str(), 0, shared), 0);
        EXPECT_EQ(::chmod(path.c_str(), 0660), 0);
        EXPECT_EQ(::chown(folder_.path().c_str(), 0, shared), 0);
        EXPECT_EQ(::chmod(folder_.path().c_str(), 02770), 0);
        return path;
    }

    static void expect_shared(const std::string& path,
                              const sqlite_peer::user& ada,
                              const sqlite_peer::user& bob) {
        sqlite_peer first{path, ada};
        ASSERT_EQ(first.ask("acquire k 3600000 attached").substr(0, 7), "granted");
        sqlite_peer second{path, bob};
        ASSERT_EQ(second.ask("take k 3600000"), "waits") << "excludes";
        ASSERT_EQ(first.ask("release k"), "released");
        ASSERT_EQ(second.hear().substr(0, 7), "granted") << "wakes";
        ASSERT_EQ(first.ask("take k 3600000"), "waits");
        second.kill(SIGKILL);
        ASSERT_EQ(first.hear().substr(0, 7), "granted") << "sees the death";
        ASSERT_EQ(first.ask("release k"), "released");
        first.quit();
        sqlite_peer later{path, bob};
        ASSERT_EQ(later.ask("acquire k 3600000 attached").substr(0, 7), "granted");
    }

    temporary_folder folder_;
};

TEST_F(SqliteUsers, WithOneGroupShareAFile) {
    expect_shared(shared_file(), {64991, shared, shared}, {64992, shared, shared});
}

TEST_F(SqliteUsers, WithAFurtherGroupInCommonShareAFile) {
    expect_shared(shared_file(), {64991, 64991, shared}, {64992, 64992, shared});
}

TEST_F(SqliteUsers, RootLeavesAUsersFileToItsUser) {
    const auto path = (folder_.path() / "dibs.sqlite").string();
    ASSERT_EQ(::chown(folder_.path().c_str(), 64991, 64991), 0);
    { std::ofstream{path}; }
    ASSERT_EQ(::chown(path.c_str(), 64991, 64991), 0);
    ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
    expect_shared(path, {0, 0, 0}, {64991, 64991, 64991});
}

TEST_F(SqliteUsers, WhoIsNotInTheGroupIsRefused) {
    const auto path = shared_file();
    sqlite_peer member{path, sqlite_peer::user{64991, 64991, shared}};
    ASSERT_EQ(member.ask("acquire k 3600000 attached").substr(0, 7), "granted");
    sqlite_peer stranger{path, sqlite_peer::user{64993, 64993, 64993}};
    EXPECT_EQ(stranger.hear(), "") << "it ended instead of asking";
}

}  // namespace

}  // namespace dibs::testing
