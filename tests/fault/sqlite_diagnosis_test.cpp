// SPDX-License-Identifier: Apache-2.0
// Goal: whatever may let things go wrong with a store's place, rights and settings is found, and a
// sound store is told as one. Method: damage one thing at a time, and look.

#include "sqlite_peer.hpp"
#include "store/finding.hpp"
#include "store/sqlite/diagnosis.hpp"
#include "support/temporary_folder.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

namespace dibs::testing {

namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using grade = store::finding::grade;

class SqliteDiagnosis : public ::testing::Test {
  protected:
    [[nodiscard]] std::string file() const { return (folder_.path() / "dibs.sqlite").string(); }

    void make() const {
        sqlite_here here{file()};
        ASSERT_TRUE(here.opened()) << here.detail;
        ASSERT_EQ(here.ask(acquire_of("k", holder_of(1), 1h)).what, core::verdict::granted);
    }

    [[nodiscard]] std::vector<store::finding> look(const std::string& path = {}) const {
        return store::sqlite::diagnose(
            {.path = path.empty() ? file() : path,
             .full = false,
             .boot_id = "a boot",
             .self = {},
             .now = {core::store_instant{1h},
                     core::wall_instant{std::chrono::duration_cast<core::microseconds>(
                         std::chrono::system_clock::now().time_since_epoch())}}});
    }

    static store::finding about(const std::vector<store::finding>& all, const char* subject) {
        const auto found = std::find_if(
            all.begin(), all.end(), [&](const auto& one) { return one.subject == subject; });
        EXPECT_NE(found, all.end()) << subject << " is not told";
        return found == all.end() ? store::finding{} : *found;
    }

    void expect(const char* subject, grade state, const std::string& says) const {
        const auto found = about(look(), subject);
        EXPECT_EQ(found.state, state) << subject << ": " << found.what;
        EXPECT_NE((found.what + "\n" + found.advice).find(says), std::string::npos)
            << subject << ": " << found.what << "\n"
            << found.advice;
        EXPECT_EQ(found.advice.empty(), state == grade::ok);
    }

    void run(const char* text) const {
        sqlite3* db = nullptr;
        ASSERT_EQ(sqlite3_open(file().c_str(), &db), SQLITE_OK);
        EXPECT_EQ(sqlite3_exec(db, text, nullptr, nullptr, nullptr), SQLITE_OK)
            << sqlite3_errmsg(db);
        sqlite3_close(db);
    }

    temporary_folder folder_;
};

TEST_F(SqliteDiagnosis, FindsNothingWrongWithASoundStore) {
    make();
    for (const auto& one : look()) {
        EXPECT_NE(one.state, grade::problem) << one.subject << ": " << one.what;
    }
    for (const auto* subject : {"file", "folder", "log", "log index", "holders folder"}) {
        expect(subject, grade::ok, "mode");
    }
    fs::remove_all(file() + ".holders");
    expect("holders folder", grade::ok, "not made yet");
}

TEST_F(SqliteDiagnosis, SeesAFileInPlaceOfTheHoldersFolder) {
    make();
    fs::remove_all(file() + ".holders");
    { std::ofstream{file() + ".holders"} << "text"; }
    expect("holders folder", grade::problem, "not a folder");
    sqlite_here here{file()};
    ASSERT_TRUE(here.opened()) << here.detail;
    const auto told = here.ask(acquire_of("other", holder_of(2)));
    EXPECT_EQ(told.took, core::effect::no);
    EXPECT_EQ(told.error, errc::store_damaged) << "not worth a retry";
    EXPECT_NE(told.detail.find("not a folder"), std::string::npos) << told.detail;
}

TEST_F(SqliteDiagnosis, SeesRightsThatAreTooWide) {
    make();
    const std::pair<const char*, std::string> all[] = {{"file", file()},
                                                       {"folder", folder_.path().string()},
                                                       {"log", file() + "-wal"},
                                                       {"log index", file() + "-shm"},
                                                       {"holders folder", file() + ".holders"}};
    for (const auto& [subject, path] : all) {
        const auto before = fs::status(path).permissions();
        fs::permissions(path, fs::perms::others_write, fs::perm_options::add);
        expect(subject, grade::problem, "everybody may write");
        fs::permissions(path, before);
        expect(subject, grade::ok, "mode");
    }
}

TEST_F(SqliteDiagnosis, SeesCompanionsThatUsersOfTheFileCannotUse) {
    make();
    fs::permissions(file(), fs::perms{0660});
    for (const auto* subject : {"log", "log index", "holders folder"}) {
        expect(subject, grade::problem, "to match");
    }
    fs::permissions(file() + "-wal", fs::perms{0660});
    fs::permissions(file() + "-shm", fs::perms{0660});
    fs::permissions(file() + ".holders", fs::perms{0770});
    for (const auto* subject : {"log", "log index", "holders folder"}) {
        expect(subject, grade::ok, "mode");
    }
    if (::geteuid() != 0) {
        GTEST_SKIP() << "giving files away takes root";
    }
    ASSERT_EQ(::chown((file() + "-wal").c_str(), static_cast<uid_t>(-1), 64990), 0);
    expect("log", grade::problem, "group 64990");
    fs::permissions(file(), fs::perms{0600});
    ASSERT_EQ(::chown((file() + ".holders").c_str(), 64991, static_cast<gid_t>(-1)), 0);
    expect("holders folder", grade::problem, "64991");
}

TEST_F(SqliteDiagnosis, SeesThatItIsAnotherUsers) {
    if (::geteuid() != 0) {
        GTEST_SKIP() << "giving files away takes root";
    }
    make();
    ASSERT_EQ(::chown(file().c_str(), 64991, 64991), 0);
    expect("file", grade::warning, "another user's");
    ASSERT_EQ(::chown(folder_.path().c_str(), 64991, 64991), 0);
    expect("folder", grade::warning, "another user's");
}

TEST_F(SqliteDiagnosis, SeesAnotherJournalMode) {
    make();
    run("PRAGMA journal_mode = DELETE");
    expect("journal mode", grade::problem, "delete");
}

TEST_F(SqliteDiagnosis, SeesANewerSchema) {
    make();
    run("PRAGMA user_version = 99");
    expect("schema", grade::problem, "99");
}

TEST_F(SqliteDiagnosis, SeesDamagedPagesAndSaysWhatToDo) {
    make();
    run("PRAGMA wal_checkpoint(TRUNCATE)");
    const auto size = fs::file_size(file());
    ASSERT_GT(size, 4096U);
    {
        std::mt19937 bits{7};
        std::fstream out{file(), std::ios::binary | std::ios::in | std::ios::out};
        out.seekp(2048);
        for (auto at = 2048U; at < size; ++at) {
            out.put(static_cast<char>(bits()));
        }
    }
    const auto all = look();
    EXPECT_EQ(about(all, "integrity").state, grade::problem) << about(all, "integrity").what;
    for (const auto& one : all) {
        EXPECT_EQ(one.what.find("not an error"), std::string::npos) << one.subject;
        EXPECT_EQ(one.what.find("no more rows"), std::string::npos) << one.subject;
    }
    expect("records", grade::problem, "backup");
}

TEST_F(SqliteDiagnosis, SeesBytesThatAreNoDatabase) {
    {
        std::mt19937 bits{7};
        std::ofstream out{file(), std::ios::binary};
        for (int byte = 0; byte < 8192; ++byte) {
            out.put(static_cast<char>(bits()));
        }
    }
    expect("schema", grade::problem, "not a database");
}

TEST_F(SqliteDiagnosis, SeesThatTheFileIsGone) {
    make();
    fs::rename(file(), file() + ".old");
    expect("file system", grade::problem, "moved or removed");
}

TEST_F(SqliteDiagnosis, SeesADiskThatRunsFullAndOneInMemory) {
    const auto disk = folder_.path() / "disk";
    fs::create_directory(disk);
    if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=6m") != 0) {
        GTEST_SKIP() << "cannot mount a small disk: " << std::strerror(errno);
    }
    const auto path = (disk / "dibs.sqlite").string();
    {
        sqlite_here here{path};
        ASSERT_TRUE(here.opened()) << here.detail;
        ASSERT_EQ(here.ask(acquire_of("k", holder_of(1))).what, core::verdict::granted);
        EXPECT_EQ(about(look(path), "file system").state, grade::warning);
        EXPECT_NE(about(look(path), "file system").what.find("tmpfs"), std::string::npos);
        EXPECT_EQ(about(look(path), "free space").state, grade::warning);
        { std::ofstream{disk / "filler"} << std::string(3 << 20, 'x'); }
        EXPECT_EQ(about(look(path), "free space").state, grade::problem);
    }
    ::umount2(disk.c_str(), MNT_DETACH);
}

/// Asked of the kernel by a process that has no lock itself.
bool somebody_locks(const std::string& path, off_t from, off_t bytes) {
    const pid_t child = ::fork();
    if (child == 0) {
        const int opened = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
        struct flock wanted {};
        wanted.l_type = F_WRLCK;
        wanted.l_whence = SEEK_SET;
        wanted.l_start = from;
        wanted.l_len = bytes;
        const bool asked = ::fcntl(opened, F_GETLK, &wanted) == 0;
        ::_exit(asked && wanted.l_type != F_UNLCK ? 0 : 1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    return status == 0;
}

TEST_F(SqliteDiagnosis, LooksWithoutDroppingALockOfThisProcess) {
    // Closing any descriptor of a file drops all locks that the process has on it.
    constexpr off_t shared_first = 0x40000002;
    constexpr off_t shared_size = 510;
    constexpr off_t index_in_use = 128;
    sqlite_here here{file()};
    ASSERT_TRUE(here.opened()) << here.detail;
    ASSERT_EQ(here.ask(acquire_of("k", holder_of(1), 1h)).what, core::verdict::granted);
    const auto locked = [&] {
        return somebody_locks(file(), shared_first, shared_size) &&
               somebody_locks(file() + "-shm", index_in_use, 1);
    };
    ASSERT_TRUE(locked());
    for (const auto& one : here->diagnose()) {
        EXPECT_NE(one.state, grade::problem) << one.subject << ": " << one.what;
    }
    EXPECT_TRUE(locked());
    ASSERT_EQ(here.ask(release_of("k", holder_of(1))).what, core::verdict::released);
    EXPECT_TRUE(locked());
}

TEST_F(SqliteDiagnosis, SeesAClockThatWasNeverSet) {
    make();
    const auto told =
        store::sqlite::diagnose({.path = file(),
                                 .full = false,
                                 .boot_id = "a boot",
                                 .self = {},
                                 .now = {core::store_instant{1h}, core::wall_instant{1h}}});
    EXPECT_EQ(about(told, "clock").state, grade::problem);
}

TEST_F(SqliteDiagnosis, AFileThatIsLockedIsNotToldAsDamaged) {
    make();
    sqlite3* other = nullptr;
    ASSERT_EQ(sqlite3_open(file().c_str(), &other), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(other,
                           "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = DELETE;"
                           "BEGIN EXCLUSIVE",
                           nullptr,
                           nullptr,
                           nullptr),
              SQLITE_OK)
        << sqlite3_errmsg(other);
    expect("records", grade::warning, "locked");
    sqlite3_close(other);
}

}  // namespace

}  // namespace dibs::testing
