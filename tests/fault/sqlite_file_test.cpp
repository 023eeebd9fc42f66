// SPDX-License-Identifier: Apache-2.0
// Goal: what happens to the file is told clearly, changes nothing that is not ours, and loses
// nothing that was acknowledged. Method: a small disk, files of others, rights, and kill -9.

#include "sqlite_peer.hpp"
#include "store/sqlite/host_clock.hpp"
#include "store/sqlite/place.hpp"
#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <string>

namespace dibs::testing {

namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

class SqliteFile : public ::testing::Test {
  protected:
    [[nodiscard]] std::string file() const { return (folder_.path() / "dibs.sqlite").string(); }

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

    void expect_refused(const std::string& path, errc why) const {
        sqlite_here here{path};
        EXPECT_FALSE(here.opened());
        EXPECT_EQ(here.error, why) << here.detail;
        EXPECT_NE(here.detail.find(path), std::string::npos) << here.detail;
    }

    temporary_folder folder_;
};

class small_disk {
  public:
    small_disk(const fs::path& at, const char* size) : at_{at} {
        fs::create_directory(at);
        mounted_ = ::mount("tmpfs", at.c_str(), "tmpfs", 0, size) == 0;
        why_ = std::strerror(errno);
    }
    ~small_disk() {
        if (mounted_) {
            ::umount2(at_.c_str(), MNT_DETACH);
        }
    }
    [[nodiscard]] bool mounted() const { return mounted_; }
    [[nodiscard]] const std::string& why() const { return why_; }
    void fill() {
        std::ofstream out{at_ / "filler", std::ios::binary};
        const std::string block(4096, 'x');
        while (out.write(block.data(), 4096).flush()) {
        }
    }
    void drain() { fs::remove(at_ / "filler"); }

  private:
    fs::path at_;
    bool mounted_ = false;
    std::string why_;
};

TEST_F(SqliteFile, AFullDiskRefusesLosesNothingAndHeals) {
    small_disk disk{folder_.path() / "disk", "size=1m"};
    if (!disk.mounted()) {
        GTEST_SKIP() << "cannot mount a small disk: " << disk.why();
    }
    {
        sqlite_here here{(folder_.path() / "disk" / "dibs.sqlite").string()};
        ASSERT_TRUE(here.opened()) << here.detail;
        ASSERT_EQ(here.ask(acquire_of("held", holder_of(1), 1h)).what, core::verdict::granted);
        ASSERT_EQ(here.ask(acquire_of("done", holder_of(2), 1h)).what, core::verdict::granted);
        ASSERT_EQ(here.ask(finish_of("done", holder_of(2), result_of("outcome", 1h, 1h))).what,
                  core::verdict::finished);
        disk.fill();
        // The log may have room for a few more; every answer must be either done or surely not.
        core::answer told;
        std::uint64_t last = 0;
        for (std::uint64_t at = 10; at < 2000; ++at) {
            const auto key = "new/" + std::string(900, 'k') + std::to_string(at);
            told = here.ask(acquire_of(key, holder_of(at), 1h));
            if (told.what != core::verdict::granted) {
                break;
            }
            last = at;
        }
        ASSERT_EQ(told.what, core::verdict::failed) << "the disk never ran full";
        EXPECT_EQ(told.took, core::effect::no) << told.detail;
        EXPECT_EQ(told.error, errc::store_refused) << told.detail;
        EXPECT_EQ(told.error, condition::retryable);

        // One that is too large for what is left fails alone.
        disk.drain();
        std::vector<core::entry> batch;
        batch.push_back({acquire_of("small", holder_of(3), 1h), here.world().now() + 10s});
        auto large = acquire_of("large", holder_of(4), 1h);
        large.mark = result_of(std::string(4'000'000, 'v'), 1h, 1h);
        batch.push_back({large, here.world().now() + 10s});
        std::optional<store::answers> both;
        here->execute(store::lane::others, std::move(batch), [&](store::answers given) {
            both = std::move(given);
        });
        ASSERT_TRUE(here.world().run_until([&] { return both.has_value(); }, 30s));
        EXPECT_EQ((*both)[0].what, core::verdict::granted) << (*both)[0].detail;
        EXPECT_EQ((*both)[1].took, core::effect::no) << (*both)[1].detail;
        EXPECT_EQ((*both)[1].error, errc::store_refused) << (*both)[1].detail;

        EXPECT_EQ(here.ask(renew_of("held", holder_of(1), 1h)).what, core::verdict::renewed);
        EXPECT_EQ(here.ask(acquire_of("done", holder_of(5))).what, core::verdict::done);
        if (last != 0) {
            const auto key = "new/" + std::string(900, 'k') + std::to_string(last);
            EXPECT_EQ(here.ask(renew_of(key, holder_of(last), 1h)).what, core::verdict::renewed);
        }
        EXPECT_EQ(here.ask(acquire_of("large", holder_of(6))).what, core::verdict::granted)
            << "the refused one was not done later";
    }
}

TEST_F(SqliteFile, ResultsMarksAndGrantsSurviveAKill) {
    sqlite_peer writer{file()};
    ASSERT_EQ(writer.ask("acquire done 60000 attached").substr(0, 7), "granted");
    ASSERT_EQ(writer.ask("finish done outcome"), "finished");
    const auto marked = number_in(writer.ask("mark begun attempt-1"));
    ASSERT_GT(marked, 0U);
    writer.kill(SIGKILL);

    sqlite_here reader{file()};
    ASSERT_TRUE(reader.opened()) << reader.detail;
    const auto done = reader.ask(acquire_of("done", holder_of(1)));
    ASSERT_EQ(done.what, core::verdict::done);
    EXPECT_EQ(done.result->value, "outcome");
    const auto begun = reader.ask(acquire_of("begun", holder_of(2)));
    ASSERT_EQ(begun.what, core::verdict::done) << "a mark stays when its writer dies";
    EXPECT_TRUE(begun.result->is_mark);
    EXPECT_EQ(begun.result->value, "attempt-1");
    EXPECT_EQ(begun.result->fence, marked);
}

TEST_F(SqliteFile, WhatIsMadeIsForItsUserAlone) {
    const auto path = file();
    const auto mask = ::umask(0);
    {
        sqlite_here here{path};
        ASSERT_TRUE(here.opened()) << here.detail;
        ASSERT_EQ(here.ask(acquire_of("k", holder_of(1))).what, core::verdict::granted);
        const auto rights = [](const std::string& of) {
            struct stat entry {};
            EXPECT_EQ(::stat(of.c_str(), &entry), 0) << of;
            return entry.st_mode & 07777U;
        };
        EXPECT_EQ(rights(path), 0600U);
        EXPECT_EQ(rights(path + "-wal"), 0600U);
        EXPECT_EQ(rights(path + "-shm"), 0600U);
        EXPECT_EQ(rights(path + ".holders"), 0700U);
    }
    ::umask(mask);
}

TEST_F(SqliteFile, WhatIsNotAStoreIsRefusedAndLeftAsItIs) {
    { std::ofstream{file()} << std::string(5000, 't'); }
    const auto text = bytes_of(file());
    expect_refused(file(), errc::store_damaged);
    EXPECT_EQ(bytes_of(file()), text);

    const auto theirs = (folder_.path() / "theirs.db").string();
    run(theirs, "CREATE TABLE people (name TEXT); INSERT INTO people VALUES ('Ada')");
    const auto before = bytes_of(theirs);
    expect_refused(theirs, errc::store_damaged);
    EXPECT_EQ(bytes_of(theirs), before);
    EXPECT_FALSE(fs::exists(theirs + ".holders"));
}

TEST_F(SqliteFile, ANewerSchemaIsRefused) {
    {
        sqlite_here here{file()};
        ASSERT_TRUE(here.opened()) << here.detail;
    }
    run(file(), "PRAGMA user_version = 99");
    expect_refused(file(), errc::newer_format);
}

TEST_F(SqliteFile, AnOlderSchemaGetsWhatItLacks) {
    {
        sqlite_here here{file()};
        ASSERT_TRUE(here.opened()) << here.detail;
        auto kept = acquire_of("k", holder_of(1), 1h);
        kept.attached = core::attachment::detached;
        ASSERT_EQ(here.ask(kept).what, core::verdict::granted);
    }
    // As the first version of the tables was.
    run(file(),
        "DROP TABLE ticket; ALTER TABLE record DROP COLUMN queued; PRAGMA user_version = 1");
    for (int times = 0; times < 2; ++times) {
        sqlite_here here{file()};
        ASSERT_TRUE(here.opened()) << here.detail;
        EXPECT_EQ(here.ask(acquire_of("k", holder_of(2))).what, core::verdict::held)
            << "what was there is there";
        const auto told = here.ask(queued_acquire_of("k", holder_of(3)));
        EXPECT_EQ(told.what, core::verdict::held);
        EXPECT_EQ(told.position, 1U);
        here.ask(release_of("k", holder_of(3)));
    }
}

TEST_F(SqliteFile, ANewerRecordIsRefusedAloneAndListedAround) {
    sqlite_here here{file()};
    ASSERT_TRUE(here.opened()) << here.detail;
    ASSERT_EQ(here.ask(acquire_of("newer", holder_of(1))).what, core::verdict::granted);
    ASSERT_EQ(here.ask(acquire_of("older", holder_of(2))).what, core::verdict::granted);
    run(file(), "UPDATE record SET format = 99 WHERE key = 'newer'");
    const auto told = here.ask(renew_of("newer", holder_of(1)));
    EXPECT_EQ(told.error, errc::newer_format) << told.detail;
    EXPECT_EQ(told.took, core::effect::no);
    EXPECT_EQ(here.ask(renew_of("older", holder_of(2))).what, core::verdict::renewed);
    const auto page = here.list();
    ASSERT_EQ(page.records.size(), 1U);
    EXPECT_EQ(page.records.front().key, "older");
    EXPECT_FALSE(page.detail.empty()) << "people are told that something is missing";
}

TEST_F(SqliteFile, AFolderAnEmptyPathAndMissingRightsAreToldApart) {
    expect_refused(folder_.path().string(), errc::invalid_argument);
    sqlite_here nowhere{""};
    EXPECT_EQ(nowhere.error, errc::invalid_argument);
    if (::geteuid() != 0) {
        GTEST_SKIP() << "rights are tested by becoming somebody else, which takes root";
    }
    const auto locked = folder_.path() / "locked";
    fs::create_directory(locked);
    fs::permissions(folder_.path(), fs::perms::all);
    fs::permissions(locked, fs::perms::owner_all);
    ASSERT_EQ(::seteuid(65534), 0);
    expect_refused((locked / "dibs.sqlite").string(), errc::permission_denied);
    ASSERT_EQ(::seteuid(0), 0);
}

void expect_displaced(const core::answer& told) {
    EXPECT_EQ(told.what, core::verdict::not_held) << told.detail;
    EXPECT_EQ(told.took, core::effect::yes);
    EXPECT_EQ(told.lost, core::loss::replaced);
    EXPECT_NE(told.detail.find("moved, removed or replaced"), std::string::npos) << told.detail;
}

/// Neither grants nor renews nor releases any more; `what_happens` comes between grant and the
/// rest.
void expect_noticed(const std::string& path, const std::function<void()>& what_happens) {
    sqlite_here here{path};
    ASSERT_TRUE(here.opened()) << here.detail;
    for (std::uint64_t at = 1; at <= 3; ++at) {
        ASSERT_EQ(here.ask(acquire_of("k" + std::to_string(at), holder_of(at))).what,
                  core::verdict::granted);
    }
    what_happens();
    // At once, however lately the path was looked at.
    expect_displaced(here.ask(release_of("k1", holder_of(1))));
    expect_displaced(here.ask(finish_of("k2", holder_of(2), result_of("outcome", 1h, 1h))));
    const auto told = here.ask(acquire_of("other", holder_of(4)));
    EXPECT_EQ(told.took, core::effect::no) << "not a single grant more";
    EXPECT_EQ(told.error, errc::store_unreachable) << told.detail;
    EXPECT_NE(told.detail.find(path), std::string::npos) << told.detail;
    expect_displaced(here.ask(renew_of("k3", holder_of(3))));
    EXPECT_EQ(here.list().error, errc::store_unreachable);
}

TEST_F(SqliteFile, AFileThatWasMovedIsNoticed) {
    expect_noticed(file(), [&] { fs::rename(file(), file() + ".old"); });
}

TEST_F(SqliteFile, AFileThatWasRemovedIsNoticed) {
    expect_noticed(file(), [&] { fs::remove(file()); });
}

TEST_F(SqliteFile, AFileWhoseFolderWasMovedIsNoticed) {
    const auto place = folder_.path() / "place";
    fs::create_directory(place);
    expect_noticed((place / "dibs.sqlite").string(),
                   [&] { fs::rename(place, folder_.path() / "elsewhere"); });
}

TEST_F(SqliteFile, AFileThatWasReplacedByAnotherStoreIsNoticed) {
    const auto other = (folder_.path() / "other.sqlite").string();
    {
        sqlite_here made{other};
        ASSERT_TRUE(made.opened()) << made.detail;
    }
    expect_noticed(file(), [&] { fs::rename(other, file()); });
}

TEST_F(SqliteFile, AFileOfTheSameNumberOnADiskMountedAboveIsNoticed) {
    const auto at = folder_.path() / "disk";
    const auto path = (at / "dibs.sqlite").string();
    small_disk below{at, "size=2m"};
    if (!below.mounted()) {
        GTEST_SKIP() << "cannot mount a disk: " << below.why();
    }
    const auto number = [&] {
        struct stat entry {};
        EXPECT_EQ(::stat(path.c_str(), &entry), 0);
        return entry.st_ino;
    };
    ino_t before = 0;
    std::optional<small_disk> above;
    expect_noticed(path, [&] {
        before = number();
        above.emplace(at, "size=2m");
        ASSERT_TRUE(above->mounted()) << above->why();
        { std::ofstream{path} << "another one"; }
        EXPECT_EQ(number(), before) << "fresh disks count alike, or this test tests nothing";
    });
}

TEST_F(SqliteFile, ARenewalNoticesSoonThatTheFileWasTakenAway) {
    sqlite_here here{file()};
    ASSERT_TRUE(here.opened()) << here.detail;
    ASSERT_EQ(here.ask(acquire_of("k", holder_of(1))).what, core::verdict::granted);
    fs::rename(file(), file() + ".old");
    const auto end = here.world().now() + 10s;
    core::answer told;
    do {
        told = here.ask(renew_of("k", holder_of(1)));
    } while (told.what == core::verdict::renewed && here.world().now() < end);
    expect_displaced(told);
}

// Without log and index the next process begins with new ones, and sees nothing of what is held.
TEST_F(SqliteFile, ARenewalNoticesSoonThatTheLogWasTakenAway) {
    const std::pair<const char*, std::function<void(const std::string& path)>> ways[] = {
        {"moved",
         [](const std::string& path) {
             fs::rename(path + "-wal", path + ".old-wal");
             fs::rename(path + "-shm", path + ".old-shm");
         }},
        {"replaced",
         [](const std::string& path) {
             fs::remove(path + "-wal");
             fs::remove(path + "-shm");
             sqlite_peer next{path};
             EXPECT_EQ(next.ask("acquire k 3600000 attached").substr(0, 7), "granted")
                 << "this harm is done, or the test tests nothing; the holder has to learn of it";
         }},
    };
    for (const auto& [way, happens] : ways) {
        SCOPED_TRACE(way);
        const auto path = (folder_.path() / way).string();
        sqlite_here here{path};
        ASSERT_TRUE(here.opened()) << here.detail;
        ASSERT_EQ(here.ask(acquire_of("k", holder_of(1))).what, core::verdict::granted);
        happens(path);
        const auto end = here.world().now() + 10s;
        core::answer told;
        do {
            told = here.ask(renew_of("k", holder_of(1)));
        } while (told.what == core::verdict::renewed && here.world().now() < end);
        expect_displaced(told);
        EXPECT_EQ(here.ask(acquire_of("other", holder_of(2))).took, core::effect::no);
    }
}

TEST_F(SqliteFile, AFileThatCameBackIsTrustedAgain) {
    sqlite_here here{file()};
    ASSERT_TRUE(here.opened()) << here.detail;
    fs::rename(file(), file() + ".old");
    ASSERT_EQ(here.ask(acquire_of("k", holder_of(1))).took, core::effect::no);
    fs::rename(file() + ".old", file());
    EXPECT_EQ(here.ask(acquire_of("k", holder_of(1))).what, core::verdict::granted);
}

TEST_F(SqliteFile, AShortLogIsLeftBehindWithoutLossAndALongOneIsNot) {
    const auto log = file() + "-wal";
    {
        sqlite_here here{file()};
        ASSERT_TRUE(here.opened()) << here.detail;
        auto asked = acquire_of("k", holder_of(1));
        asked.mark = result_of("begun", 1h, 1h);
        ASSERT_EQ(here.ask(asked).what, core::verdict::granted);
    }
    EXPECT_TRUE(fs::exists(log));
    for (int round = 0; round < 3; ++round) {
        sqlite_here here{file()};
        ASSERT_TRUE(here.opened()) << here.detail;
        const auto told = here.ask(acquire_of("k", holder_of(2)));
        ASSERT_TRUE(told.result.has_value()) << "round " << round;
        EXPECT_EQ(told.result->value, "begun");
    }
    {
        sqlite_here here{file()};
        ASSERT_TRUE(here.opened()) << here.detail;
        auto asked = acquire_of("large", holder_of(1));
        asked.mark = result_of(std::string(2 << 20, 'x'), 1h, 1h);
        ASSERT_EQ(here.ask(asked).what, core::verdict::granted);
    }
    EXPECT_FALSE(fs::exists(log));
}

TEST_F(SqliteFile, AForkedChildIsRefusedAndHarmsNothing) {
    sqlite_here here{file()};
    ASSERT_TRUE(here.opened()) << here.detail;
    ASSERT_EQ(here.ask(acquire_of("k", holder_of(1), 1h)).what, core::verdict::granted);
    const pid_t child = ::fork();
    if (child == 0) {
        bool refused = false;
        std::vector<core::entry> batch;
        batch.push_back({acquire_of("other", holder_of(2)), here.world().now() + 1s});
        here->execute(store::lane::others, std::move(batch), [&](store::answers told) {
            refused =
                told.front().error == errc::unsupported && told.front().took == core::effect::no;
        });
        here.world().run_until([&] { return refused; }, 10s);
        here->close();
        ::_exit(refused ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(here.ask(renew_of("k", holder_of(1), 1h)).what, core::verdict::renewed);
    sqlite_here other{file()};
    EXPECT_EQ(other.ask(acquire_of("k", holder_of(3))).what, core::verdict::held);
}

TEST(SqlitePlace, FileSystemsOfSeveralHostsAreTold) {
    using store::sqlite::shared_between_hosts;
    EXPECT_EQ(shared_between_hosts(0x6969, ""), "NFS");
    EXPECT_EQ(shared_between_hosts(0x01021997, ""), "9p");
    EXPECT_EQ(shared_between_hosts(static_cast<long>(0xff534d42), ""), "CIFS");
    EXPECT_FALSE(shared_between_hosts(0x65735546, "fuse.sshfs").empty());
    EXPECT_TRUE(shared_between_hosts(0x65735546, "fuseblk").empty());
    EXPECT_TRUE(shared_between_hosts(0xef53, "").empty()) << "ext4";
    EXPECT_TRUE(shared_between_hosts(0x01021994, "").empty()) << "tmpfs";
}

TEST(SqliteClock, AShiftedTimeNamespaceIsTakenOff) {
    using store::sqlite::boot_offset;
    EXPECT_EQ(boot_offset("monotonic           0         0\nboottime       86400       500\n"),
              24h + 500ns);
    EXPECT_EQ(boot_offset("monotonic 5 0\nboottime -7 0\n"), -7s);
    EXPECT_EQ(boot_offset(""), 0ns);
}

}  // namespace

}  // namespace dibs::testing
