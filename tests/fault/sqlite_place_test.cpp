// SPDX-License-Identifier: Apache-2.0
// Goal: whatever lies at the path of a store, or does not, is told in one clear line; nothing is
// granted, nothing is made where nobody asked for it, and nothing of others is changed. Method:
// odd files, links, folders and names; rights by becoming nobody.

#include "sqlite_peer.hpp"
#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <string>
#include <vector>

namespace dibs::testing {

namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr uid_t nobody = 65534;

struct verdict_of_opening {
    std::error_code error;
    std::string detail;
};

verdict_of_opening open_at(const std::string& path, bool make = true) {
    pumped_environment world{std::random_device{}()};
    store::sqlite_options options;
    options.path = path;
    options.make = make;
    verdict_of_opening told;
    const auto made =
        store::open_sqlite_store(world.view(), std::move(options), told.error, told.detail);
    if (made) {
        made->close();
    }
    return told;
}

bool one_line(const std::string& text) {
    return !text.empty() && text.size() < 1000 &&
           std::none_of(text.begin(), text.end(), [](char one) {
               return static_cast<unsigned char>(one) < 0x20;
           });
}

void expect_refused(const std::string& path, errc why, const std::string& says, bool make = true) {
    const auto told = open_at(path, make);
    EXPECT_EQ(told.error, why) << told.detail;
    EXPECT_NE(told.detail.find(says), std::string::npos) << told.detail;
    EXPECT_TRUE(one_line(told.detail)) << told.detail;
}

void expect_works(const std::string& path) {
    sqlite_here here{path};
    ASSERT_TRUE(here.opened()) << here.detail;
    EXPECT_EQ(here.ask(acquire_of("k", holder_of(1))).what, core::verdict::granted);
    EXPECT_EQ(here.ask(release_of("k", holder_of(1))).what, core::verdict::released);
}

/// Runs it as that user in a process of its own; true when it said so.
bool as_user(uid_t user, const std::function<bool()>& does) {
    const pid_t child = ::fork();
    if (child == 0) {
        const bool became = ::setgid(user) == 0 && ::setuid(user) == 0;
        ::_exit(became && does() ? 0 : 1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    return status == 0;
}

class SqlitePlaceOf : public ::testing::Test {
  protected:
    [[nodiscard]] std::string at(const std::string& name) const {
        return (folder_.path() / name).string();
    }
    [[nodiscard]] std::vector<std::string> names() const {
        std::vector<std::string> all;
        for (const auto& entry : fs::directory_iterator{folder_.path()}) {
            all.push_back(entry.path().filename().string());
        }
        return all;
    }
    static std::string bytes_of(const std::string& path) {
        std::ifstream in{path, std::ios::binary};
        return {std::istreambuf_iterator<char>{in}, {}};
    }
    static void run(const std::string& path, const char* text) {
        sqlite3* db = nullptr;
        ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
        EXPECT_EQ(sqlite3_exec(db, text, nullptr, nullptr, nullptr), SQLITE_OK)
            << sqlite3_errmsg(db);
        sqlite3_close(db);
    }

    temporary_folder folder_;
};

TEST_F(SqlitePlaceOf, AFolderThatIsNotThereIsNamedAndNotMade) {
    expect_refused(at("missing/dibs.sqlite"), errc::store_unreachable, at("missing"));
    expect_refused(at("missing/dibs.sqlite"), errc::store_unreachable, at("missing"), false);
    EXPECT_TRUE(names().empty());
    { std::ofstream{at("file")} << "text"; }
    expect_refused(at("file/dibs.sqlite"), errc::store_unreachable, at("file"));
}

TEST_F(SqlitePlaceOf, ARelativePathInAFolderThatIsGoneIsToldAsThat) {
    fs::create_directory(at("gone"));
    const auto before = fs::current_path();
    fs::current_path(at("gone"));
    fs::remove(at("gone"));
    expect_refused("dibs.sqlite", errc::store_unreachable, "the current folder cannot be found");
    fs::current_path(before);
}

TEST_F(SqlitePlaceOf, WhoeverOnlyReadsMakesNothing) {
    expect_refused(at("dibs.sqlite"), errc::store_unreachable, "no store at this path", false);
    EXPECT_TRUE(names().empty());
    // Made by somebody in advance, for its rights.
    { std::ofstream{at("dibs.sqlite")}; }
    expect_refused(at("dibs.sqlite"), errc::store_unreachable, "no store at this path", false);
    EXPECT_EQ(fs::file_size(at("dibs.sqlite")), 0U);
    expect_works(at("dibs.sqlite"));
    EXPECT_FALSE(open_at(at("dibs.sqlite"), false).error);
}

TEST_F(SqlitePlaceOf, ALinkLeadsToTheOneFile) {
    fs::create_directory(at("real"));
    fs::create_directory_symlink(at("real"), at("folder"));
    fs::create_symlink(at("real/dibs.sqlite"), at("link.sqlite"));
    sqlite_here direct{at("real/dibs.sqlite")};
    ASSERT_TRUE(direct.opened()) << direct.detail;
    ASSERT_EQ(direct.ask(acquire_of("k", holder_of(1))).what, core::verdict::granted);
    for (const auto* name : {"link.sqlite", "folder/dibs.sqlite"}) {
        sqlite_here through{at(name)};
        ASSERT_TRUE(through.opened()) << through.detail;
        EXPECT_EQ(through.ask(acquire_of("k", holder_of(2))).what, core::verdict::held) << name;
    }
}

TEST_F(SqlitePlaceOf, ALinkToNothingIsToldAsOne) {
    fs::create_symlink(at("unmounted/dibs.sqlite"), at("link.sqlite"));
    for (const bool make : {true, false}) {
        expect_refused(at("link.sqlite"), errc::store_unreachable, at("unmounted"), make);
    }
    fs::create_symlink("loop", at("loop"));
    EXPECT_TRUE(open_at(at("loop")).error);
    EXPECT_TRUE(one_line(open_at(at("loop")).detail));
    EXPECT_EQ(names().size(), 2U);
}

TEST_F(SqlitePlaceOf, WhatIsNoFileIsRefused) {
    expect_refused(folder_.path().string(), errc::invalid_argument, "folder");
    expect_refused(folder_.path().string() + "/", errc::invalid_argument, "folder");
    ASSERT_EQ(::mkfifo(at("fifo").c_str(), 0600), 0);
    expect_refused(at("fifo"), errc::invalid_argument, "not a regular file");
    if (::mknod(at("device").c_str(), S_IFCHR | 0600, makedev(1, 3)) == 0) {
        expect_refused(at("device"), errc::invalid_argument, "not a regular file");
    }
}

TEST_F(SqlitePlaceOf, OddNamesWorkAndAreShownOnOneLine) {
    for (const std::string name : {"with blank.db",
                                   "100%25.db",
                                   "what?.db",
                                   "größe 日本.db",
                                   "a'b\"c;--.db",
                                   "file:x?mode=memory",
                                   "-dash",
                                   "new\nline.db",
                                   "\x01\xff.db"}) {
        expect_works(at(name));
        EXPECT_TRUE(fs::exists(at(name))) << name;
    }
    fs::create_directory(at("fol\nder"));
    expect_refused(at("fol\nder"), errc::invalid_argument, "fol\\x0ader");
    expect_refused(at("not\nthere/file"), errc::store_unreachable, "not\\x0athere");
}

TEST_F(SqlitePlaceOf, APathThatIsTooLongIsToldWithTheAdviceInSight) {
    for (const std::size_t length : {600U, 4096U, 70'000U}) {
        std::string path = folder_.path().string();
        while (path.size() < length) {
            path += "/" + std::string(199, 'n');
        }
        const auto told = open_at(path);
        EXPECT_TRUE(told.error) << length;
        EXPECT_TRUE(one_line(told.detail)) << told.detail;
    }
    std::string path = folder_.path().string();
    for (int at = 0; at < 3; ++at) {
        path += "/" + std::string(150, 'n');
        fs::create_directory(path);
    }
    path += "/" + std::string(150, 'n');
    expect_refused(path, errc::invalid_argument, "shorter path");
}

TEST_F(SqlitePlaceOf, ARelativePathMeansTheFolderOfItsTime) {
    const auto before = fs::current_path();
    fs::create_directory(at("one"));
    fs::create_directory(at("two"));
    fs::current_path(at("one"));
    {
        sqlite_here here{"dibs.sqlite"};
        fs::current_path(at("two"));
        ASSERT_TRUE(here.opened()) << here.detail;
        EXPECT_EQ(here.ask(acquire_of("k", holder_of(1))).what, core::verdict::granted);
        sqlite_here same{at("one/dibs.sqlite")};
        EXPECT_EQ(same.ask(acquire_of("k", holder_of(2))).what, core::verdict::held);
        EXPECT_EQ(here.ask(release_of("k", holder_of(1))).what, core::verdict::released);
    }
    fs::current_path(before);
    EXPECT_TRUE(fs::is_empty(at("two")));
}

TEST_F(SqlitePlaceOf, MissingRightsAreToldApart) {
    if (::geteuid() != 0) {
        GTEST_SKIP() << "rights are tested by becoming somebody else, which takes root";
    }
    fs::permissions(folder_.path(), fs::perms::all);
    expect_works(at("theirs.sqlite"));
    { std::ofstream{at("readable")}; }
    fs::permissions(at("readable"), fs::perms{0444});
    fs::create_directory(at("closed"));
    fs::permissions(at("closed"), fs::perms{0700});
    fs::create_directory(at("readable folder"));
    fs::permissions(at("readable folder"), fs::perms{0755});
    { std::ofstream{at("readable folder/dibs.sqlite")}; }
    fs::permissions(at("readable folder/dibs.sqlite"), fs::perms{0666});
    EXPECT_TRUE(as_user(nobody, [&] {
        for (const auto* name : {"theirs.sqlite",
                                 "readable",
                                 "closed/dibs.sqlite",
                                 "readable folder/new.sqlite",
                                 "readable folder/dibs.sqlite"}) {
            expect_refused(at(name), errc::permission_denied, "right");
        }
        return !::testing::Test::HasFailure();
    }));
    EXPECT_TRUE(fs::is_empty(at("closed")));
    EXPECT_EQ(fs::file_size(at("readable folder/dibs.sqlite")), 0U);
}

TEST_F(SqlitePlaceOf, ALogWithoutItsIndexIsReadAllTheSame) {
    const auto path = at("dibs.sqlite");
    {
        sqlite_here here{path};
        ASSERT_TRUE(here.opened()) << here.detail;
        auto asked = acquire_of("k", holder_of(1));
        asked.mark = result_of("begun", 1h, 1h);
        ASSERT_EQ(here.ask(asked).what, core::verdict::granted);
    }
    ASSERT_TRUE(fs::exists(path + "-wal"));
    ASSERT_TRUE(fs::remove(path + "-shm"));
    sqlite_here here{path};
    ASSERT_TRUE(here.opened()) << here.detail;
    const auto told = here.ask(acquire_of("k", holder_of(2)));
    ASSERT_TRUE(told.result);
    EXPECT_EQ(told.result->value, "begun");
}

TEST_F(SqlitePlaceOf, TheLogOfARemovedFileIsNotTakenForTheNewOnes) {
    const auto path = at("dibs.sqlite");
    {
        sqlite_here here{path};
        auto asked = acquire_of("k", holder_of(1));
        asked.mark = result_of("begun", 1h, 1h);
        ASSERT_EQ(here.ask(asked).what, core::verdict::granted);
    }
    ASSERT_TRUE(fs::exists(path + "-wal"));
    fs::remove(path);
    sqlite_here here{path};
    ASSERT_TRUE(here.opened()) << here.detail;
    const auto told = here.ask(acquire_of("k", holder_of(2)));
    EXPECT_EQ(told.what, core::verdict::granted);
    EXPECT_FALSE(told.result);
}

TEST_F(SqlitePlaceOf, TheLogOfAnotherProgramsDatabaseIsRefusedAndNothingIsFoldedIn) {
    const auto path = at("dibs.sqlite");
    expect_works(path);
    // Folds the log in, so that the file is whole without it.
    run(path, "PRAGMA wal_checkpoint(TRUNCATE)");
    fs::remove(path + "-wal");
    fs::remove(path + "-shm");
    const auto before = bytes_of(path);

    // A log that its owner left behind.
    sqlite3* theirs = nullptr;
    ASSERT_EQ(sqlite3_open(at("theirs.db").c_str(), &theirs), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(theirs,
                           "PRAGMA page_size = 2048; PRAGMA journal_mode = WAL;"
                           "CREATE TABLE people (name TEXT); INSERT INTO people VALUES ('Ada')",
                           nullptr,
                           nullptr,
                           nullptr),
              SQLITE_OK);
    fs::copy_file(at("theirs.db-wal"), path + "-wal");
    sqlite3_close(theirs);

    const auto log = bytes_of(path + "-wal");
    expect_refused(path, errc::store_damaged, "another program");
    EXPECT_EQ(bytes_of(path), before) << "nothing of it came into the store";
    EXPECT_EQ(bytes_of(path + "-wal"), log) << "nor is theirs thrown away";
    fs::remove(path + "-wal");
    fs::remove(path + "-shm");
    expect_works(path);
}

TEST_F(SqlitePlaceOf, WhatIsNoStoreIsToldAsThatAndWhatToDo) {
    { std::ofstream{at("text")} << std::string(5000, 't'); }
    expect_refused(at("text"), errc::store_damaged, "not a database");
    std::mt19937 bits{7};
    {
        std::ofstream out{at("random"), std::ios::binary};
        for (int byte = 0; byte < 8192; ++byte) {
            out.put(static_cast<char>(bits()));
        }
    }
    const auto before = bytes_of(at("random"));
    expect_refused(at("random"), errc::store_damaged, "not a database");
    EXPECT_EQ(open_at(at("random")).detail.find("not an error"), std::string::npos);
    EXPECT_EQ(bytes_of(at("random")), before);
    for (const std::size_t length : {1U, 100U, 511U, 512U, 513U, 1000U}) {
        { std::ofstream{at("short")} << std::string(length, 'x'); }
        expect_refused(at("short"), errc::store_damaged, "not a database");
        EXPECT_EQ(bytes_of(at("short")), std::string(length, 'x'));
    }
    // Begins like one, and is none.
    { std::ofstream{at("headed"), std::ios::binary} << "SQLite format 3" << '\0' << before; }
    const auto headed = bytes_of(at("headed"));
    expect_refused(at("headed"), errc::store_damaged, "another path");
    EXPECT_EQ(bytes_of(at("headed")), headed);
}

}  // namespace

}  // namespace dibs::testing
