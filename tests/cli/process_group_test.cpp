// SPDX-License-Identifier: Apache-2.0
// Signals reach the group that was meant, and nobody else once it is gone: through the pidfd of its
// leader, and by number as on older kernels.
#include "cli/supervisor/process_group.hpp"

#include "support.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace dibs::cli {
namespace {

/// A leader and a second member, both asleep.
class family {
  public:
    family() {
        int ready[2];
        EXPECT_EQ(::pipe(ready), 0);
        leader_ = ::fork();
        if (leader_ == 0) {
            ::setpgid(0, 0);
            const pid_t member = ::fork();
            if (member == 0) {
                ::pause();
            }
            (void)!::write(ready[1], &member, sizeof member);
            ::pause();
        }
        EXPECT_EQ(::read(ready[0], &member_, sizeof member_), static_cast<ssize_t>(sizeof member_));
        ::close(ready[0]);
        ::close(ready[1]);
        descriptor_ = open_pidfd(leader_);
    }
    ~family() {
        ::kill(member_, SIGKILL);
        if (!reaped_) {
            ::kill(leader_, SIGKILL);
            ::waitpid(leader_, nullptr, 0);
        }
        ::close(descriptor_);
    }
    family(const family&) = delete;
    family& operator=(const family&) = delete;

    void end_leader() {
        ::kill(leader_, SIGKILL);
        ::waitpid(leader_, nullptr, 0);
        reaped_ = true;
    }
    [[nodiscard]] process_group group() const { return {leader_, ::getsid(0), descriptor_}; }
    [[nodiscard]] pid_t leader() const { return leader_; }
    [[nodiscard]] pid_t member() const { return member_; }
    void leader_was_reaped() { reaped_ = true; }

  private:
    pid_t leader_ = -1;
    pid_t member_ = -1;
    int descriptor_ = -1;
    bool reaped_ = false;
};

using send = bool (process_group::*)(int) const noexcept;

class ProcessGroup : public ::testing::TestWithParam<send> {
  protected:
    static bool signal(const process_group& group, int number) {
        return (group.*GetParam())(number);
    }
};

TEST_P(ProcessGroup, ReachesEveryMember) {
    family some;
    EXPECT_TRUE(signal(some.group(), SIGKILL));
    EXPECT_TRUE(testing::eventually([&] {
        return !testing::is_running(some.leader()) && !testing::is_running(some.member());
    }));
}

TEST_P(ProcessGroup, ReachesMembersThatOutliveTheirLeader) {
    family some;
    some.end_leader();
    EXPECT_TRUE(signal(some.group(), 0));
    EXPECT_TRUE(signal(some.group(), SIGKILL));
    EXPECT_TRUE(testing::eventually([&] { return !testing::is_running(some.member()); }));
}

TEST_P(ProcessGroup, HitsNobodyOnceEverybodyIsGone) {
    family some;
    ::kill(some.member(), SIGKILL);
    some.end_leader();
    EXPECT_TRUE(testing::eventually([&] { return !signal(some.group(), 0); }));
    EXPECT_FALSE(signal(some.group(), SIGKILL));
}

INSTANTIATE_TEST_SUITE_P(Ways,
                         ProcessGroup,
                         ::testing::Values(&process_group::signal,
                                           &process_group::signal_by_number),
                         [](const auto& way) { return way.index == 0 ? "Best" : "ByNumber"; });

TEST(ProcessGroupByNumber, SparesAStrangerWhoGotTheNumber) {
    // The number now belongs to another session's group: what the guard would meet after reuse.
    family some;
    const process_group stranger{some.leader(), ::getsid(0) + 1, -1};
    EXPECT_FALSE(stranger.signal_by_number(SIGKILL));
    EXPECT_TRUE(testing::is_running(some.leader()));
    EXPECT_TRUE(testing::is_running(some.member()));
}

TEST(ProcessGroupByNumber, NeverMeansEverybody) {
    EXPECT_FALSE(process_group().signal(SIGKILL));
    EXPECT_FALSE((process_group{0, ::getsid(0), -1}.signal(SIGKILL)));
    EXPECT_FALSE((process_group{1, ::getsid(0), -1}.signal(SIGKILL)));
}

}  // namespace
}  // namespace dibs::cli
