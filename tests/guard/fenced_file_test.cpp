// SPDX-License-Identifier: Apache-2.0
// Goal: a file keeps late writers out, and is never half written. Method: writers that meet, are
// stopped and killed.
#include "support/eventually.hpp"
#include "support/temporary_folder.hpp"

#include <dibs/fenced_file.hpp>

#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace dibs::testing {
namespace {

using namespace std::chrono_literals;

class FencedFile : public ::testing::Test {
  protected:
    [[nodiscard]] std::string content() const {
        std::ifstream opened{file_};
        std::ostringstream all;
        all << opened.rdbuf();
        return all.str();
    }
    [[nodiscard]] std::size_t files() const {
        std::size_t count = 0;
        for ([[maybe_unused]] const auto& one :
             std::filesystem::directory_iterator{folder_.path()}) {
            ++count;
        }
        return count;
    }

    temporary_folder folder_;
    const std::filesystem::path file_ = folder_.path() / "price";
};

TEST_F(FencedFile, AnOlderFenceIsRefusedAndTheSameOneWritesAgain) {
    EXPECT_TRUE(write_fenced(file_, "five", 5));
    EXPECT_TRUE(write_fenced(file_, "five again", 5));
    EXPECT_FALSE(write_fenced(file_, "four", 4));
    EXPECT_EQ(content(), "five again");
    EXPECT_TRUE(write_fenced(file_, "six", 6));
    EXPECT_EQ(content(), "six");
    EXPECT_EQ(files(), 2U);
}

TEST_F(FencedFile, AClaimKeepsOlderOnesOutBeforeAnythingIsWritten) {
    EXPECT_TRUE(write_fenced(file_, "five", 5));
    EXPECT_TRUE(claim_fenced(file_, 7));
    EXPECT_FALSE(write_fenced(file_, "six", 6));
    EXPECT_FALSE(claim_fenced(file_, 6));
    EXPECT_EQ(content(), "five");
}

TEST_F(FencedFile, KeepsTheModeAndTakesNoNonsense) {
    EXPECT_TRUE(write_fenced(file_, "five", 5));
    ASSERT_EQ(::chmod(file_.c_str(), 0640), 0);
    EXPECT_TRUE(write_fenced(file_, "six", 6));
    struct stat seen {};
    ASSERT_EQ(::stat(file_.c_str(), &seen), 0);
    EXPECT_EQ(seen.st_mode & 07777, 0640U);
    std::error_code error;
    EXPECT_FALSE(write_fenced(file_, "x", 0, 1s, error));
    EXPECT_EQ(error, condition::invalid_argument);
    EXPECT_FALSE(write_fenced(folder_.path() / "no" / "where", "x", 9, 1s, error));
    EXPECT_EQ(error, std::errc::no_such_file_or_directory);
    std::ofstream{file_.string() + ".fence"} << "nonsense";
    EXPECT_FALSE(write_fenced(file_, "x", 9, 1s, error));
    EXPECT_EQ(error, errc::store_damaged);
    EXPECT_EQ(content(), "six");
}

TEST_F(FencedFile, AWriterThatStandsStillMakesOthersWaitForAWhile) {
    EXPECT_TRUE(write_fenced(file_, "five", 5));
    const int other = ::open((file_.string() + ".fence").c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_EQ(::flock(other, LOCK_EX), 0);
    std::error_code error;
    EXPECT_FALSE(write_fenced(file_, "six", 6, 20ms, error));
    EXPECT_EQ(error, condition::retryable);
    ::close(other);
    EXPECT_TRUE(write_fenced(file_, "six", 6));
}

TEST_F(FencedFile, AWaitWithoutEndIsNone) {
    EXPECT_TRUE(write_fenced(file_, "five", 5));
    const int other = ::open((file_.string() + ".fence").c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_EQ(::flock(other, LOCK_EX), 0);
    std::jthread later([&] {
        std::this_thread::sleep_for(50ms);
        ::close(other);
    });
    EXPECT_TRUE(write_fenced(file_, "six", 6, std::chrono::milliseconds::max()));
    EXPECT_TRUE(write_fenced(file_, "seven", 7, std::chrono::milliseconds::min()));
}

TEST_F(FencedFile, WritersThatMeetAndDieLeaveTheContentOfTheNewest) {
    const std::string body(20'000, 'x');
    for (int round = 0; round < 5; ++round) {
        std::vector<pid_t> writers;
        for (int writer = 0; writer < 4; ++writer) {
            writers.push_back(::fork());
            if (writers.back() == 0) {
                ::prctl(PR_SET_PDEATHSIG, SIGKILL);
                for (std::uint64_t turn = 1;; ++turn) {
                    const auto fence = static_cast<std::uint64_t>(round) * 1'000'000 + turn * 4 +
                                       static_cast<std::uint64_t>(writer);
                    std::error_code error;
                    (void)write_fenced(
                        file_, std::to_string(fence) + " " + body, fence, 10s, error);
                }
            }
        }
        // Readers see whole contents, whose fence never falls.
        std::uint64_t newest = 0;
        const auto end = std::chrono::steady_clock::now() + 100ms;
        while (std::chrono::steady_clock::now() < end) {
            const auto seen = content();
            if (!seen.empty()) {
                const auto fence = std::stoull(seen);
                ASSERT_GE(fence, newest);
                ASSERT_EQ(seen.size(), std::to_string(fence).size() + 1 + body.size());
                newest = fence;
            }
        }
        for (const auto writer : writers) {
            ::kill(writer, SIGKILL);
            ::waitpid(writer, nullptr, 0);
        }
        EXPECT_GT(newest, 0U);
    }
    EXPECT_TRUE(write_fenced(file_, "the end", 99'000'000));
    EXPECT_EQ(content(), "the end");
}

}  // namespace
}  // namespace dibs::testing
