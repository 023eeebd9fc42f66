// SPDX-License-Identifier: Apache-2.0
// The store's file system is full: before the first use, and while a key is held.
#include "support.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>

namespace dibs::testing {
namespace {

/// A small file system of its own.
class small_disk {
  public:
    small_disk()
        : mounted_(::mount("tmpfs", here_.path().c_str(), "tmpfs", 0, "size=1m") == 0),
          error_(errno) {}
    ~small_disk() {
        if (mounted_) {
            ::umount2(here_.path().c_str(), MNT_DETACH);
        }
    }
    small_disk(const small_disk&) = delete;
    small_disk& operator=(const small_disk&) = delete;

    [[nodiscard]] bool mounted() const noexcept { return mounted_; }
    [[nodiscard]] std::string why_not() const { return std::strerror(error_); }
    [[nodiscard]] const folder& where() const noexcept { return here_; }

    /// Takes every byte that is left; what others free later is taken at the next call.
    void fill() const {
        const int file = ::open(here_.file("ballast").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
        const std::string block(4'096, 'x');
        while (::write(file, block.data(), block.size()) > 0) {
        }
        ::close(file);
    }
    void empty() const { ::unlink(here_.file("ballast").c_str()); }

  private:
    folder here_;
    bool mounted_;
    int error_;
};

TEST(RunFullDisk, NothingIsStartedOnAFullDiskAndEverythingWorksAfterwards) {
    const small_disk disk;
    if (!disk.mounted()) {
        GTEST_SKIP() << "cannot mount a small file system: " << disk.why_not();
    }
    disk.fill();
    const folder elsewhere;
    auto how = dibs_on(disk.where(), {"run", "k", "touch", elsewhere.file("ran")});
    const auto found = process(how).wait();
    EXPECT_EQ(found.status, 69) << found.err;
    EXPECT_NE(found.err, "");
    EXPECT_FALSE(exists(elsewhere.file("ran")));
    disk.empty();
    const auto after = process(how).wait();
    EXPECT_EQ(after.status, 0) << after.err;
    EXPECT_TRUE(exists(elsewhere.file("ran")));
}

TEST(RunFullDisk, WhoWaitsForAFullDiskIsToldSoAndGoesOnWaiting) {
    const small_disk disk;
    if (!disk.mounted()) {
        GTEST_SKIP() << "cannot mount a small file system: " << disk.why_not();
    }
    process leads(dibs_on(disk.where(), {"elect", "k", "--", "sleep", "100"}));
    ASSERT_TRUE(eventually(
        [&] { return run_dibs(disk.where(), {"ls"}).out.find("sleep 100") != std::string::npos; }));
    process waits(dibs_on(disk.where(), {"elect", "k", "--", "true"}));
    ASSERT_TRUE(eventually([&] {
        return run_dibs(disk.where(), {"ls", "--json"}).out.find("\"waiters\": 1") !=
               std::string::npos;
    }));
    disk.fill();
    leads.signal(SIGKILL);
    EXPECT_TRUE(eventually([&] {
        disk.fill();
        return waits.err().find("does not grant for now") != std::string::npos;
    })) << waits.err();
    EXPECT_NE(waits.err().find("full"), std::string::npos) << waits.err();
    disk.empty();
    EXPECT_EQ(waits.wait().status, 0) << waits.err();
}

TEST(RunFullDisk, ADiskThatFillsUpMeanwhileNeverLetsTwoIn) {
    const small_disk disk;
    if (!disk.mounted()) {
        GTEST_SKIP() << "cannot mount a small file system: " << disk.why_not();
    }
    const folder elsewhere;
    const auto log = elsewhere.file("beats");
    process first(dibs_on(disk.where(),
                          {"run", "--ttl", "2s", "k", child_program(), "beat", log, "stubborn"}));
    ASSERT_TRUE(eventually([&] { return !read_beats(log).empty(); })) << first.err();
    disk.fill();
    const auto full_until = boottime_ns() + 4'000'000'000;
    // Whether a renewal still fits or not, nobody else gets in while the first one works.
    EXPECT_TRUE(eventually([&] {
        disk.fill();
        const auto found = run_dibs(disk.where(), {"run", "k", child_program(), "descriptors"});
        EXPECT_TRUE(found.status == 75 || found.status == 69 ||
                    !is_running(read_beats(log).back().process))
            << found.status << found.err;
        return boottime_ns() > full_until;
    }));
    disk.empty();
    const bool stopped = first.ended();
    if (!stopped) {
        first.signal(SIGKILL);
    } else {
        EXPECT_EQ(first.wait().status, 79) << first.err();
    }
    process second(dibs_on(disk.where(),
                           {"run",
                            "--wait",
                            "20s",
                            "k",
                            "sh",
                            "-c",
                            child_program() + " beat " + log + " & sleep 0.3; kill $!"}));
    EXPECT_EQ(second.wait().status, 0) << second.err();
    EXPECT_EQ(overlap_in(read_beats(log)), "");
}

}  // namespace
}  // namespace dibs::testing
